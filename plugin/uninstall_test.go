package plugin

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
)

func TestADaemonWhoseDaemonSetIsGoneLeavesNoFile(t *testing.T) {
	t.Parallel()
	for daemonSet, left := range map[string]int{"pacing/pod-pacemaker": 0, "": 8} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			d := &Daemon{cluster: &cluster{clients: clients{kube: kubetest.Of(kubefake.NewClientset())}}, options: Options{
				Log: discard(), DaemonSet: daemonSet, Kubeconfig: "-", RunDir: filepath.Join(dir, "run"),
				CNI: cni.UseAuto, CNIConfDir: filepath.Join(dir, "cni"), CNIBinDir: filepath.Join(dir, "cni"), StateDir: filepath.Join(dir, "state"), GatePath: filepath.Join(dir, "bin", "pacemaker-gate"),
			}}
			for _, file := range []string{
				"run/gate.sock", "run/admin.sock", "run/lock", "state/config.json", "state/policies.json", "state/costs.json",
				"bin/pacemaker-gate", "cni/" + cni.FileName,
			} {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
			}
			require.NoError(t, d.uninstall(t.Context()))
			files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
			require.NoError(t, err)
			assert.Len(t, files, left)
		})
	}
}
