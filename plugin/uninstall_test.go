package plugin

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/uninstall"
)

func TestADaemonWhoseDaemonSetIsGoneLeavesNoFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		daemonSet string
		there     bool
		left      int
	}{{"pacing/pod-pacemaker", true, 0}, {"pacing/pod-pacemaker", false, 8}, {"", true, 8}} {
		synctest.Test(t, func(t *testing.T) {
			dir, client := t.TempDir(), kubefake.NewClientset()
			sets := client.AppsV1().DaemonSets("pacing")
			if c.there {
				_, err := sets.Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "pod-pacemaker"}}, metav1.CreateOptions{})
				require.NoError(t, err)
			}
			d := &Daemon{cluster: &cluster{clients: clients{kube: kubetest.Of(client)}}, options: Options{
				Log: discard(), DaemonSet: c.daemonSet, Kubeconfig: "-", RunDir: filepath.Join(dir, "run"),
				CNI: cni.UseAuto, CNIConfDir: filepath.Join(dir, "cni"), CNIBinDir: filepath.Join(dir, "cni"), StateDir: filepath.Join(dir, "state"), GatePath: filepath.Join(dir, "bin", "pacemaker-gate"),
			}}
			for _, file := range []string{
				"run/gate.sock", "run/admin.sock", "run/lock", "state/config.json", "state/policies.json", "state/costs.json",
				"bin/pacemaker-gate", "cni/" + cni.FileName,
			} {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
			}
			d.seen.Store(uninstall.See(t.Context(), d.cluster.kube, c.daemonSet, d.options.Log))
			if c.there {
				require.NoError(t, sets.Delete(t.Context(), "pod-pacemaker", metav1.DeleteOptions{}))
			}
			require.NoError(t, d.uninstall(t.Context()))
			files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
			require.NoError(t, err)
			assert.Len(t, files, c.left, c)
		})
	}
}

func TestADaemonLooksForItsDaemonSetWhenItBegins(t *testing.T) {
	t.Parallel()
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "pacing", Name: "pod-pacemaker"}}
	c := unstartedAPINodeWith(t, []nodeOption{with(func(o *Options) { o.DaemonSet = "pacing/pod-pacemaker" })}, set)
	var mute atomic.Bool
	mute.Store(true)
	c.dynamic.PrependReactor("list", "*", func(clienttest.Action) (bool, runtime.Object, error) {
		return mute.Load(), nil, errors.New("connection refused")
	})
	c.starts()
	asked := func() bool {
		return slices.ContainsFunc(c.kube.Actions(), func(a clienttest.Action) bool { return a.Matches("get", "daemonsets") })
	}
	assert.False(t, asked(), "it would wait for minutes between two requests")
	mute.Store(false)
	c.eventually("the DaemonSet is seen", c.d.seen.Load)
}
