package plugin

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// When other CPUs are left to the pods, the limits are for these, within half a minute.
func TestLimitsFollowTheCPUsThatPodsCanUse(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Fatal("this test needs two CPUs: it takes one from the pods")
	}
	proc, cgroups := newProcTree(t, "1.00"), t.TempDir()
	pods := filepath.Join(cgroups, "kubepods")
	require.NoError(t, os.Mkdir(pods, 0o755))
	allow := func(cpus string) {
		require.NoError(t, os.WriteFile(filepath.Join(pods, "cpuset.cpus.effective"), []byte(cpus+"\n"), 0o600))
	}
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(Options{Log: discard(), ProcRoot: proc.root, CgroupRoot: cgroups}, cores.Of(runtime.NumCPU()), crd.Documents{}, nil, defaultTuning())
		perCore := v1alpha1.Decimal{IntVal: 3}
		d.applier.configure(crd.FromFile(&v1alpha1.PacemakerConfig{Spec: v1alpha1.PacemakerConfigSpec{ThrottleConfig: v1alpha1.ThrottleConfig{
			Adaptive: &v1alpha1.Adaptive{}, MaxConcurrent: &v1alpha1.MaxConcurrent{PerCore: &perCore},
		}}}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.applier.followCores(ctx, d.options) }()
		inForce := func() throttle.Settings { return d.starts.Snapshot(time.Now()).Settings }
		for cpus, count := range map[string]int{"0": 1, "0-1": 2} {
			allow(cpus)
			time.Sleep(coresEvery)
			synctest.Wait()
			assert.Equal(t, count, inForce().Adaptive.Cores)
			assert.Equal(t, 3*count, inForce().MaxConcurrent)
			s := d.Status()
			assert.Equal(t, count, s.Cores.Usable)
			assert.Equal(t, runtime.NumCPU(), s.Cores.Node)
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

// A file that cannot be read restricts nothing. While there is nothing better, that counts, but not later.
func TestCPUsThatAreNotKnownInFullReplaceNoOthers(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Fatal("this test needs two CPUs: it takes one from the pods")
	}
	cgroups := t.TempDir()
	pods := filepath.Join(cgroups, "kubepods")
	require.NoError(t, os.Mkdir(pods, 0o755))
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(Options{Log: discard(), ProcRoot: newProcTree(t, "1.00").root, CgroupRoot: cgroups}, cores.Of(99), crd.Documents{}, nil, defaultTuning())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.applier.followCores(ctx, d.options) }()
		for _, c := range []struct {
			cpus string
			want int
		}{{"?", runtime.NumCPU()}, {"0", 1}, {"?", 1}, {"0-1", 2}} {
			require.NoError(t, os.WriteFile(filepath.Join(pods, "cpuset.cpus.effective"), []byte(c.cpus+"\n"), 0o600))
			time.Sleep(coresEvery)
			synctest.Wait()
			assert.Equal(t, c.want, d.applier.coresNow().Count, c.cpus)
		}
		cancel()
		require.NoError(t, <-ended)
	})
}
