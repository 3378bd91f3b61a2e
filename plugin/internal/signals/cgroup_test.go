package signals

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// calmFor bounds the wait for a window in which other work leaves half of the machine's CPUs idle.
const calmFor = 6 * time.Second

// This is TestAThrottledContainerHoldsNoStart on this machine, with processes in a cgroup that has a tenth of a core.
// It needs root, a cgroup, a kernel that reports pressure, and a machine that is not busy with other work. Without
// these the log says so, and only the recorded data counts.
func TestAThrottledProcessOnThisMachineHoldsNoStart(t *testing.T) {
	t.Parallel()
	_, pressure := os.ReadFile(filepath.Join("/proc", "pressure", "cpu"))
	group, err := newGroup(t)
	if err := errors.Join(err, pressure); err != nil {
		t.Logf("the recorded data only: %v", err)
		throttledAsRecorded(t)
		return
	}
	for range runtime.NumCPU() {
		group.spin(t)
	}
	s, calm := measureCalm(t)
	if !calm {
		t.Logf("the recorded data only: the machine was busy for %s", calmFor)
		throttledAsRecorded(t)
		return
	}
	t.Logf("measured in %s: CPU use %.0f %%, pressure %.0f %%", group.dir, s[throttle.SignalCPU].Value, s[throttle.SignalCPUPressure].Value)
	assert.Positive(t, group.throttled(t), "the kernel throttled the processes")
	assertThrottled(t, s)
	assert.True(t, start(s).Admitted)
}

// measureCalm returns the signals of the first whole window in which the machine was calm. false: no such window came
// in time.
func measureCalm(t *testing.T) (throttle.Signals, bool) {
	t.Helper()
	monitor := New("/proc", "/sys/fs/cgroup", cores.Of(runtime.NumCPU()), &client{}, nil)
	for end := time.Now().Add(calmFor); time.Now().Before(end); time.Sleep(waitingEvery) {
		_, s := monitor.sample()
		cpu := s[throttle.SignalCPU]
		require.NoError(t, cpu.Err)
		require.NoError(t, s[throttle.SignalCPUPressure].Err)
		if span(cpu) >= defaultWindow && cpu.Value < 50 {
			return s, true
		}
	}
	return throttle.Signals{}, false
}

// group is a cgroup with a tenth of a core.
type group struct{ dir string }

// newGroup makes a group, which lasts until the test ends. The error says why this is not possible.
func newGroup(t *testing.T) (group, error) {
	t.Helper()
	parent, quota, err := cpuHierarchy()
	if err != nil {
		return group{}, err
	}
	g := group{dir: filepath.Join(parent, "pod-pacemaker-sensor-"+strconv.Itoa(os.Getpid()))}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return group{}, err
	}
	t.Cleanup(func() {
		// A process leaves its cgroup a moment after its Wait returns.
		assert.Eventually(t, func() bool { return os.Remove(g.dir) == nil }, time.Minute, 10*time.Millisecond)
	})
	for _, file := range slices.Sorted(maps.Keys(quota)) {
		if err := os.WriteFile(filepath.Join(g.dir, file), []byte(quota[file]), 0o600); err != nil {
			return group{}, err
		}
	}
	return g, nil
}

// cpuHierarchy returns the folder in which cgroups with a CPU limit are made, and the files that set a tenth of a
// core.
func cpuHierarchy() (dir string, quota map[string]string, err error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		switch {
		case f[2] == "cgroup" && slices.Contains(strings.Split(f[3], ","), "cpu"):
			return f[1], map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "10000"}, nil
		case f[2] == "cgroup2":
			below, err := os.ReadFile(filepath.Join(f[1], "cgroup.subtree_control"))
			if err == nil && slices.Contains(strings.Fields(string(below)), "cpu") {
				return f[1], map[string]string{"cpu.max": "10000 100000"}, nil
			}
		}
	}
	return "", nil, fmt.Errorf("no cgroup hierarchy with the CPU controller")
}

// spin runs a process in the group that wants a whole CPU, until the test ends.
func (g group) spin(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), spinVariable+"=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close() // the process ends with its standard input
		assert.NoError(t, cmd.Wait())
	})
	require.NoError(t, os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600))
	_, err = in.Write([]byte{1})
	require.NoError(t, err)
}

// throttled returns how often the group had to wait for its next period.
func (g group) throttled(t *testing.T) int {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join(g.dir, "cpu.stat"))
	require.NoError(t, err)
	_, after, found := bytes.Cut(stat, []byte("nr_throttled "))
	require.True(t, found, "%s", stat)
	n, err := strconv.Atoi(strings.Fields(string(after))[0])
	require.NoError(t, err)
	return n
}
