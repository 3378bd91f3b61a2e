package signals

import (
	"fmt"
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
	tr := newTree(t)
	tr.remove("stat")
	require.ErrorContains(t, newReader(tr.root, "/nowhere").read(one).counters[throttle.SignalCPUPressure].err, "/stat: ", "the kernel's mean is too low")
	require.ErrorIs(t, newReader(root, "/nowhere").read(cores.Cores{CPUs: cpuset.New(7)}).counters[throttle.SignalCPU].err, ErrLine)
	wrong := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(wrong, "stat"), []byte("cpu  1 2 3 4 5 6 7 8\ncpu0 many 2 3 4 5 6 7 8\n"), 0o600))
	require.ErrorIs(t, newReader(wrong, "/nowhere").read(one).counters[throttle.SignalCPU].err, ErrParse)
}

// The kernel's CPU pressure is a mean over all CPUs that are not idle. So one of four busy CPUs makes at most a quarter of
// it, however many tasks wait for that one.
func TestThePressureOnTheCPUsOfThePodsCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		busy, others, iowait float64 // seconds of CPU 0, and of each of the three others
		stalled              float64
		want                 float64
	}{
		"the others are busy":        {2, 2, 0, 0.4, 80},
		"the others are half busy":   {2, 1, 0, 0.4, 50},
		"the others wait for a disk": {2, 1, 1, 0.4, 80},
		"the others are idle":        {2, 0, 0, 1.6, 80},
		"tasks wait for the others":  {2, 2, 0, 1, 100},
		"the CPUs of the pods idle":  {0, 2, 0, 0.4, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t)
			stat := func(busy, others, iowait float64) {
				ticks := func(s float64) int64 { return int64(s * 100) }
				text := fmt.Sprintf("cpu  %d 0 0 0 %d 0 0 0 0 0\ncpu0 %d 0 0 0 0 0 0 0 0 0\n", ticks(busy+3*others), ticks(3*iowait), ticks(busy))
				for id := range 3 {
					text += fmt.Sprintf("cpu%d %d 0 0 0 %d 0 0 0 0 0\n", id+1, ticks(others), ticks(iowait))
				}
				tr.write("stat", text)
			}
			synctest.Test(t, func(t *testing.T) {
				m := New(tr.root, tr.root, cores.Cores{Count: 1, Node: 4, CPUs: cpuset.New(0)}, &client{}, func(observe.Event) {})
				stat(100, 1, 1)
				tr.stall(7, 0, 0)
				m.sample()
				time.Sleep(2 * time.Second)
				stat(100+c.busy, 1+c.others, 1+c.iowait)
				tr.stall(7+c.stalled, 0, 0)
				_, s := m.sample()
				require.NoError(t, s[throttle.SignalCPUPressure].Err)
				assert.InDelta(t, c.want, s[throttle.SignalCPUPressure].Value, 1e-3)
			})
		})
	}
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
