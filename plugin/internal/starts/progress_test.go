package starts

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A container is progress. Otherwise, when the app of one of many idle pods comes, the next and larger loan
// could be due before the app is measured.
func TestAContainerThatBeginsIsProgress(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for file, text := range map[string]string{
		"cgroup.controllers": "cpu io memory\n", "io.stat": "8:0 rbytes=1 wbytes=1\n",
		"pod/cpu.stat": "usage_usec 100000\n", "pod/io.stat": "", "pod/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
	}
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, func(o *Options) { o.Roots = usage.Roots{Proc: "/nowhere", Cgroup: root} })
		p := n.pod("idle", withInit)
		p.sandbox.Linux = &api.LinuxPodSandbox{CgroupParent: "/pod"}
		p.runs().starts("init")
		n.pod("waits").runs().waits("app")
		began := time.Now()
		n.passes(8 * time.Second)
		require.WithinDuration(t, began, p.view().StalledSince, 2*time.Second)
		p.exits("init")
		n.passes(time.Second)
		p.starts("init-2")
		began = time.Now()
		n.passes(time.Second)
		assert.WithinDuration(t, began, p.view().StalledSince, 10*time.Millisecond)
		p.is(throttle.Starting, reasons.WithinLimits)
	})
}
