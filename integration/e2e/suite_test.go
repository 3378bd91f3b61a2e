//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/integration/suite"
)

// testTimeout bounds waits for expected events. No verdict depends on it.
const testTimeout = 3 * time.Minute

// node is the cluster of all scenarios.
var node *lab.Cluster

// figures are the measurements of the scenarios, printed at the end.
var figures suite.Figures

// figure records a measurement for the end of the run.
func figure(t *testing.T, format string, args ...any) {
	t.Helper()
	figures.Note(t, format, args...)
}

func TestMain(m *testing.M) {
	os.Exit(suite.ExitCode("e2e", func() (int, error) { return run(m) }))
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if err := lab.Preflight(); err != nil {
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
	node, err = lab.StartCluster(ctx, lab.ClusterOptions{RuntimeOptions: lab.RuntimeOptions{Binaries: binaries}})
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, takeDown(ctx))
	}()
	if out, err := node.Kubectl(ctx, "apply", "--server-side", "-k", repository("deploy", "crds")); err != nil {
		return 0, fmt.Errorf("CRDs of deploy/crds: %w\n%s", err, out)
	}
	if err := crdsServed(ctx); err != nil {
		return 0, err
	}
	code = m.Run()
	fmt.Print(figures.String())
	return code, nil
}

// crdsServed waits until the API server serves the kinds of the CRDs: a scenario that runs alone
// uses them at once.
func crdsServed(ctx context.Context) error {
	deadline := time.Now().Add(testTimeout)
	for {
		out, err := node.Kubectl(ctx, "get", "pacemakerconfigs,pacemakernodes,startpolicies")
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the kinds of deploy/crds are not served: %w\n%s", err, out)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// takeDown stops the cluster and checks that nothing of it is left.
func takeDown(ctx context.Context) error {
	if err := node.Stop(ctx); err != nil {
		return fmt.Errorf("stop of the cluster: %w", err)
	}
	left, err := lab.Remains(node.Run)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("left behind by the cluster:\n  %s", strings.Join(left, "\n  "))
	}
	return nil
}

// logCluster logs what the API server knows about the cluster of a failed test.
func logCluster(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by", ".lastTimestamp"},
	} {
		out, err := node.Kubectl(context.Background(), args...)
		t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	for _, s := range []*lab.Service{node.Scheduler, node.ControllerManager, node.Kubelet} {
		t.Logf("the log of %s ends:\n%s", s.Name(), s.Tail(20))
	}
}

// repository returns a path inside the repository.
func repository(parts ...string) string { return suite.Repository(parts...) }
