//go:build e2e

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// server is the API server of all tests.
var server *lab.APIServer

// api is the administrator's client of the API server of all tests, which has the CRDs of
// deploy/crds.
var api *dynamic.DynamicClient

// access is the administrator's access to that API server.
var access *rest.Config

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if server, err = lab.StartAPIServer(ctx, build.PlainProgress(os.Stderr)); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop(ctx)) }()
	if out, err := server.Kubectl(ctx, "apply", "--server-side", "-k", chart.Repository("deploy", "crds")); err != nil {
		return 0, fmt.Errorf("CRDs of deploy/crds: %w\n%s", err, out)
	}
	access = server.RESTConfig()
	if api, err = dynamic.NewForConfig(access); err != nil {
		return 0, err
	}
	for _, resource := range resources {
		if err := served(ctx, resource); err != nil {
			return 0, fmt.Errorf("waiting until %s are served: %w", resource.Resource, err)
		}
	}
	return m.Run(), nil
}

// served waits until the API server serves a kind, some time after the definition was applied.
func served(ctx context.Context, resource schema.GroupVersionResource) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := api.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}
