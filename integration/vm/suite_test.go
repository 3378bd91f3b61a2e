//go:build vm

package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/integration/suite"
)

// testTimeout bounds waits for expected events. No verdict depends on it. The guest is twenty times
// slower than its host, and slower still beside other work.
const testTimeout = 10 * time.Minute

// The API server and the guest of all scenarios. The scenarios run in the order of the files and
// leave the guest running, with the shipped unit and without pods.
var (
	server *lab.APIServer
	guest  *Machine
)

// figures are the measurements of the scenarios, printed at the end.
var figures suite.Figures

func figure(t *testing.T, format string, args ...any) {
	t.Helper()
	figures.Note(t, format, args...)
}

func TestMain(m *testing.M) {
	os.Exit(suite.ExitCode("vm", func() (int, error) { return run(m) }))
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	begin := time.Now()
	if err := Preflight(); err != nil {
		return 0, err
	}
	cache, err := lab.CacheDir()
	if err != nil {
		return 0, err
	}
	binaries, err := lab.Build(ctx, cache, build.PlainProgress(os.Stderr))
	if err != nil {
		return 0, err
	}
	system, err := BuildOS(ctx, cache)
	if err != nil {
		return 0, err
	}
	built := time.Now()
	if server, err = lab.StartAPIServer(ctx, nil); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, takeDown(ctx)) }()
	if err := boot(ctx, system, binaries); err != nil {
		return 0, err
	}
	booted := time.Now()
	code = m.Run()
	fmt.Printf("%s\nbuilds %s, boot %s, scenarios %s\n", &figures, built.Sub(begin).Round(time.Second),
		booted.Sub(built).Round(time.Second), time.Since(booted).Round(time.Second))
	return code, nil
}

// boot makes the guest a node of the API server.
func boot(ctx context.Context, system OS, binaries lab.Binaries) (err error) {
	parts := Parts{Binaries: binaries, Repository: repository()}
	if parts.KubeletAccess, err = server.Access(server.KubeletToken()); err != nil {
		return err
	}
	if parts.DaemonAccess, err = daemonAccess(ctx); err != nil {
		return err
	}
	if guest, err = NewMachine(ctx, server, system, parts); err != nil {
		return err
	}
	if err := guest.Start(ctx); err != nil {
		return err
	}
	for _, image := range []string{"pause", "herd"} {
		if err := soon(ctx, func() error {
			_, err := guest.Run(ctx, "ctr --namespace k8s.io images import --local "+imageDir+"/"+image+".tar")
			return err
		}); err != nil {
			return err
		}
	}
	return soon(ctx, func() error { return nodeReady(ctx) })
}

// daemonAccess returns access with the rights of the shipped roles.
func daemonAccess(ctx context.Context) ([]byte, error) {
	if out, err := server.Kubectl(ctx, "apply", "--server-side", "-k", repository("deploy", "crds")); err != nil {
		return nil, fmt.Errorf("CRDs: %w\n%s", err, out)
	}
	for _, file := range []string{"namespace.yaml", "serviceaccount.yaml", "rbac.yaml"} {
		if out, err := server.Kubectl(ctx, "apply", "-f", repository("deploy", "base", file)); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", file, err, out)
		}
	}
	// There is no controller that would create these service accounts, and pods need them.
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		_, err := server.Client().CoreV1().ServiceAccounts(namespace).Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("the default service account of %s: %w", namespace, err)
		}
	}
	token, err := server.Kubectl(ctx, "create", "token", "pod-pacemaker", "--namespace", "pod-pacemaker", "--duration", "24h")
	if err != nil {
		return nil, err
	}
	return server.Access(strings.TrimSpace(string(token)))
}

func nodeReady(ctx context.Context) error {
	node, err := server.Client().CoreV1().Nodes().Get(ctx, lab.DefaultNodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return errors.New("the node is not ready")
}

// soon calls ask until it returns nil, at most for testTimeout.
func soon(ctx context.Context, ask func() error) error {
	deadline := time.Now().Add(testTimeout)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("gave up after %s: %w", testTimeout, err)
		}
		time.Sleep(2 * time.Second)
	}
}

// takeDown ends the guest and the API server, and checks that nothing is left.
func takeDown(ctx context.Context) error {
	if err := server.Stop(ctx); err != nil {
		return err
	}
	left, err := lab.Remains(server.Run())
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
	}
	return err
}

// repository returns a path inside the repository.
func repository(parts ...string) string { return suite.Repository(parts...) }
