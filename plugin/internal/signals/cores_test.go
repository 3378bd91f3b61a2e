package signals

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/cpuset"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Where pods can use some CPUs, the use of these counts: the rest may be idle, or busy with other work.
func TestTheUseOfTheCPUsOfThePodsCounts(t *testing.T) {
	t.Parallel()
	root := filepath.Join("testdata", "linux-6.18")
	one := cores.Cores{Count: 1, Node: 2, CPUs: cpuset.New(0)}
	m := newReader(root, "/nowhere").read(one)
	cpu := m.counters[throttle.SignalCPU]
	require.NoError(t, cpu.err)
	assert.InDelta(t, 7202.83, cpu.used, 1e-6)
	assert.InDelta(t, 7202.83+5006.84+20.71, cpu.total, 1e-6)
	assert.InDelta(t, 75.65, m.counters[throttle.SignalIOWait].used, 1e-6, "the disk waits for all CPUs")
	require.ErrorIs(t, newReader("/nowhere", "/nowhere").read(one).counters[throttle.SignalCPU].err, ErrAbsent)
	require.ErrorIs(t, newReader(filepath.Join("testdata", "garbage"), "/nowhere").read(one).counters[throttle.SignalCPU].err, ErrLine)
	wrong := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(wrong, "stat"), []byte("cpu  1 2 3 4 5 6 7 8\ncpu0 many 2 3 4 5 6 7 8\n"), 0o600))
	require.ErrorIs(t, newReader(wrong, "/nowhere").read(one).counters[throttle.SignalCPU].err, ErrParse)
}

// Where a quota holds the pods, what its cgroup used counts, as a part of the quota.
func TestTheUseOfAQuotaCounts(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(usec, waited string) {
		for file, content := range map[string]string{
			"cpu.stat": "usage_usec " + usec + "\n", "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=" + waited + "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		} {
			require.NoError(t, os.MkdirAll(filepath.Join(root, "kubepods"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(root, "kubepods", file), []byte(content), 0o600))
		}
	}
	gone := cores.Cores{Count: 2, Node: 64, Quota: 2.5, QuotaOf: "gone"}
	for _, signal := range []throttle.Signal{throttle.SignalCPU, throttle.SignalCPUPressure} {
		assert.Equal(t, ErrAbsent, named(t, newReader(filepath.Join("testdata", "linux-6.18"), root).read(gone).counters[signal].err))
	}
	write("1000000", "500000")
	synctest.Test(t, func(t *testing.T) {
		m := New(filepath.Join("testdata", "linux-6.18"), root, cores.Cores{Count: 2, Node: 64, Quota: 2.5, QuotaOf: "kubepods"}, &client{}, func(observe.Event) {})
		m.sample()
		time.Sleep(2 * time.Second)
		write("5000000", "1500000")
		_, s := m.sample()
		assert.InDelta(t, 80, s[throttle.SignalCPU].Value, 1e-6, "4 CPU-seconds of 2 times 2.5")
		assert.InDelta(t, 50, s[throttle.SignalCPUPressure].Value, 1e-6)
	})
}

// Counters of other CPUs are not compared.
func TestOtherCPUsAreMeasuredAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := New(filepath.Join("testdata", "linux-6.18"), "/nowhere", cores.Of(2), &client{}, func(observe.Event) {})
		m.sample()
		m.SetCores(cores.Cores{Count: 1, Node: 2, CPUs: cpuset.New(0)})
		time.Sleep(2 * time.Second)
		_, s := m.sample()
		require.NoError(t, s[throttle.SignalCPU].Err)
		assert.Zero(t, s[throttle.SignalCPU].To, "not measured yet")
	})
}
