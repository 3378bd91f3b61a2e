package signals

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// allSignals are the signals in their order.
func allSignals() (all []throttle.Signal) {
	for i := range len(counters{}) {
		all = append(all, throttle.Signal(i))
	}
	return all
}

// parts returns the values that were read, for each signal.
func parts(m moment) map[string]float64 {
	all := map[string]float64{}
	for _, s := range allSignals() {
		if c := m.counters[s]; c.err == nil {
			all[s.String()] = c.used
		}
	}
	return all
}

func TestFilesOfDifferentKernelsAreRead(t *testing.T) {
	t.Parallel()
	for tree, want := range map[string]map[string]float64{
		"linux-6.18": {
			"cpu": 14498.87, "iowait": 75.65, "load": 2.51,
			"pressure.cpu.some": 4805.290897, "pressure.memory.some": 0, "pressure.memory.full": 0,
			"pressure.io.some": 152.461390, "pressure.io.full": 48.036991,
		},
		// This kernel has no line `full` for the CPU.
		"linux-4.20": {
			"cpu": 135327.63, "iowait": 166.83, "load": 0.42,
			"pressure.cpu.some": 1220.398765, "pressure.memory.some": 0.008123, "pressure.memory.full": 0.004017,
			"pressure.io.some": 39.812345, "pressure.io.full": 21.998004,
		},
		"no-psi": {"cpu": 135327.63, "iowait": 166.83, "load": 0.42},
	} {
		t.Run(tree, func(t *testing.T) {
			t.Parallel()
			m := newReader(filepath.Join("testdata", tree), "/nowhere").read(cores.Of(2))
			got := parts(m)
			require.Len(t, got, len(want))
			for signal, used := range want {
				assert.InDelta(t, used, got[signal], 1e-6, signal)
			}
			assert.InDelta(t, m.counters[throttle.SignalCPU].total, m.counters[throttle.SignalIOWait].total, 0)
			assert.Greater(t, m.counters[throttle.SignalCPU].total, m.counters[throttle.SignalCPU].used)
		})
	}
}

// names are the named errors. The error of every blind signal wraps one of them.
var names = []error{ErrAbsent, ErrDisabled, ErrRead, ErrLine, ErrParse, ErrCounter}

// named returns the one named error that err wraps.
func named(t *testing.T, err error) error {
	t.Helper()
	var found error
	for _, name := range names {
		if errors.Is(err, name) {
			require.NoError(t, found, "%v has two names", err)
			found = name
		}
	}
	require.Error(t, found, "%v has no name", err)
	return found
}

func TestEveryFailureHasANameAndAPath(t *testing.T) {
	t.Parallel()
	pressure := func(cpu, memory, memoryFull, io, ioFull error) map[throttle.Signal]error {
		return map[throttle.Signal]error{
			throttle.SignalCPUPressure: cpu, throttle.SignalMemoryPressure: memory, throttle.SignalMemoryFull: memoryFull,
			throttle.SignalIOPressure: io, throttle.SignalIOFull: ioFull,
		}
	}
	all := func(err error) map[throttle.Signal]error {
		m := pressure(err, err, err, err, err)
		m[throttle.SignalCPU], m[throttle.SignalIOWait], m[throttle.SignalLoad] = err, err, err
		return m
	}
	empty := all(ErrLine)
	empty[throttle.SignalLoad] = ErrParse // as procfs has it
	garbage := pressure(ErrParse, ErrParse, ErrParse, ErrLine, nil)
	garbage[throttle.SignalCPU], garbage[throttle.SignalIOWait], garbage[throttle.SignalLoad] = ErrParse, ErrParse, ErrParse
	for tree, want := range map[string]map[throttle.Signal]error{
		"linux-6.18":   {},
		"no-psi":       pressure(ErrAbsent, ErrAbsent, ErrAbsent, ErrAbsent, ErrAbsent),
		"nothing-here": all(ErrAbsent),
		"empty":        empty,
		"garbage":      garbage,
	} {
		t.Run(tree, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join("testdata", tree)
			m := newReader(root, "/nowhere").read(cores.Of(2))
			for _, s := range allSignals() {
				err := m.counters[s].err
				if want[s] == nil {
					require.NoError(t, err, s)
					continue
				}
				require.ErrorIs(t, err, want[s], s.String())
				assert.Equal(t, want[s], named(t, err))
				assert.ErrorContains(t, err, root)
			}
		})
	}
}

func TestAFileThatCannotBeReadIsNotAbsent(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, file := range []string{"stat", "loadavg", "pressure/cpu", "pressure/memory", "pressure/io"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, file), 0o700)) // it can be opened, but not read
	}
	for s, c := range newReader(root, "/nowhere").read(cores.Of(2)).counters {
		assert.Equal(t, ErrRead, named(t, c.err), throttle.Signal(s))
		assert.ErrorIs(t, c.err, syscall.EISDIR, throttle.Signal(s))
	}
}

func TestDisabledPSIIsReported(t *testing.T) {
	t.Parallel()
	// The error is as os.ReadFile gives it, and as procfs wraps it.
	read := &fs.PathError{Op: "read", Path: "/proc/pressure/cpu", Err: syscall.EOPNOTSUPP}
	for _, err := range []error{read, fmt.Errorf("unavailable: %w", read)} {
		got := unread("/proc/pressure/cpu", err)
		assert.Equal(t, ErrDisabled, named(t, got))
		require.ErrorIs(t, got, syscall.EOPNOTSUPP)
		require.ErrorContains(t, got, "psi=1")
	}
}

// tree is a /proc that a test writes.
type tree struct {
	t    testing.TB
	root string
}

func newTree(t testing.TB) tree {
	t.Helper()
	tr := tree{t: t, root: t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(tr.root, "pressure"), 0o700))
	tr.stall(0, 0, 0)
	tr.ticks(0, 0, 0)
	tr.write("loadavg", "0.00 0.00 0.00 1/100 1\n")
	return tr
}

func (tr tree) write(file, content string) {
	tr.t.Helper()
	require.NoError(tr.t, os.WriteFile(filepath.Join(tr.root, file), []byte(content), 0o600))
}

func (tr tree) remove(file string) {
	tr.t.Helper()
	require.NoError(tr.t, os.Remove(filepath.Join(tr.root, file)))
}

// stall sets how long tasks stalled so far, in seconds; a quarter of it in full.
func (tr tree) stall(cpu, memory, io float64) {
	tr.t.Helper()
	for file, s := range map[string]float64{"cpu": cpu, "memory": memory, "io": io} {
		const averages = "avg10=0.00 avg60=0.00 avg300=0.00"
		tr.write(filepath.Join("pressure", file), fmt.Sprintf("some %s total=%d\nfull %s total=%d\n", averages, int64(s*1e6), averages, int64(s*25e4)))
	}
}

// ticks sets for how long the CPUs were busy, idle and in iowait, in seconds. Before that they were idle for a second.
func (tr tree) ticks(busy, idle, iowait float64) {
	tr.t.Helper()
	tr.write("stat", fmt.Sprintf("cpu  %d 0 0 %d %d 0 0 0 0 0\nctxt 7\n", int64(busy*100), int64(100+idle*100), int64(iowait*100)))
}

func FuzzPressure(f *testing.F) {
	f.Add("some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n")
	f.Add("some avg10=1e9 avg60=NaN avg300=0x1p-2 total=18446744073709551615")
	f.Fuzz(func(t *testing.T, content string) {
		tr := newTree(t)
		tr.write("pressure/io", content)
		sound(t, newReader(tr.root, "/nowhere").read(cores.Of(2)), throttle.SignalIOPressure, throttle.SignalIOFull)
	})
}

func FuzzStat(f *testing.F) {
	f.Add("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
	f.Add("cpu 1 Inf 3 4 5 6 7")
	f.Add("cpu0 1 2 3 4 5 6 7\ncpu 1 2 3 4 5 6 7")
	f.Fuzz(func(t *testing.T, content string) {
		tr := newTree(t)
		tr.write("stat", content)
		sound(t, newReader(tr.root, "/nowhere").read(cores.Of(2)), throttle.SignalCPU, throttle.SignalIOWait)
	})
}

func FuzzLoad(f *testing.F) {
	f.Add("0.42 0.36 0.30 2/613 24179\n")
	f.Add("1e309 0 0")
	f.Add("\n0.42 0.36 0.30")
	f.Fuzz(func(t *testing.T, content string) {
		tr := newTree(t)
		tr.write("loadavg", content)
		sound(t, newReader(tr.root, "/nowhere").read(cores.Of(2)), throttle.SignalLoad)
	})
}

// sound asserts that each signal is a number from 0, or blind with one named error that names the file. The other
// files are still read.
func sound(t *testing.T, m moment, written ...throttle.Signal) {
	t.Helper()
	bad := map[throttle.Signal]bool{}
	for _, s := range written {
		bad[s] = true
	}
	for _, s := range allSignals() {
		c := m.counters[s]
		if c.err != nil {
			require.True(t, bad[s], "%s is blind: %v", s, c.err)
			require.ErrorIs(t, c.err, named(t, c.err))
			require.ErrorContains(t, c.err, string(filepath.Separator))
			continue
		}
		require.GreaterOrEqual(t, c.used, 0.0, s)
		if s == throttle.SignalCPU || s == throttle.SignalIOWait {
			require.GreaterOrEqual(t, c.total, c.used, s)
		}
	}
}
