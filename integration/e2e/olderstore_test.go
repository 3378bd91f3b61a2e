//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// olderBy is how many versions older the copy of etcd is. seenWithin bounds the time until the daemon has seen a change
// after that. A watch that goes on from a version that the API server has yet to reach is silent for longer.
const (
	olderBy    = 700
	seenWithin = 15 * time.Second
)

// etcd is put back to a copy that is 700 versions older while the daemon runs. A change of the configuration is then in
// force within 15 s.
func TestAnOlderCopyOfEtcd(t *testing.T) {
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}}}")
	name := d.status(t).Config.Name
	ns := namespace(t)
	data, copied := filepath.Join(node.Dir, "etcd"), filepath.Join(node.Dir, "etcd-copy")
	require.NoError(t, node.Etcd.Stop(t.Context()))
	require.NoError(t, os.CopyFS(copied, os.DirFS(data)))
	require.NoError(t, node.Etcd.Start(t.Context()))
	for n := range olderBy {
		eventually(t, "the API server serves", func() bool {
			_, err := node.Client().CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, n), metav1.PatchOptions{})
			return err == nil
		})
	}
	require.NoError(t, d.setMode(t, name, v1alpha1.ModeShadow))
	eventually(t, "the daemon knows the newest version", func() bool { return d.status(t).Config.Mode == v1alpha1.ModeShadow })
	before := d.status(t).Config.Generation

	t.Cleanup(func() {
		ctx := context.Background()
		for _, part := range []*lab.Service{node.ControllerManager, node.Scheduler, node.Kubelet} { // their watches are silent
			assert.NoError(t, part.Restart(ctx))
		}
		assert.NoError(t, node.AwaitReady(ctx))
	})
	// A daemon that asks while the API server begins to serve may be refused, and then lists in any case.
	require.NoError(t, d.Signal(t.Context(), syscall.SIGSTOP))
	t.Cleanup(func() { assert.NoError(t, d.Signal(context.Background(), syscall.SIGCONT)) })
	require.NoError(t, node.APIServer.Stop(t.Context()))
	require.NoError(t, node.Etcd.Stop(t.Context()))
	require.NoError(t, os.RemoveAll(data))
	require.NoError(t, os.Rename(copied, data))
	require.NoError(t, node.Etcd.Start(t.Context()))
	require.NoError(t, node.APIServer.Start(t.Context()))
	require.NoError(t, d.Signal(t.Context(), syscall.SIGCONT))
	require.NoError(t, d.setMode(t, name, v1alpha1.ModeDisabled))
	began := time.Now()
	eventually(t, "the mode is in force", func() bool { return d.status(t).Config.Mode == v1alpha1.ModeDisabled })
	took := time.Since(began)
	figure(t, "etcd put back by %d versions: mode: Disabled was in force after %.1f s", olderBy, took.Seconds())
	assert.Less(t, took, seenWithin)
	assert.LessOrEqual(t, d.status(t).Config.Generation, before)
}

// setMode changes the mode of a PacemakerConfig.
func (d *daemon) setMode(t *testing.T, config string, mode v1alpha1.Mode) error {
	t.Helper()
	out, err := node.Kubectl(t.Context(), "patch", "pacemakerconfig", config, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"mode":%q}}`, mode))
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
