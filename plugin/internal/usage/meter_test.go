package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeProc is a /proc with processes whose figures a test sets.
type fakeProc struct {
	t   *testing.T
	dir string
}

// process writes a process with children. It has moved this many bytes and stood in line for this many seconds.
func (p fakeProc) process(pid, moved int, inLine float64, children string) {
	p.t.Helper()
	for file, content := range map[string]string{
		"stat":                                fmt.Sprintf("%d (app) S 1 %d", pid, pid) + strings.Repeat(" 0", 47) + "\n",
		"io":                                  fmt.Sprintf("rchar: 999\nwchar: 9\nsyscr: 9\nsyscw: 9\nread_bytes: %d\nwrite_bytes: 1\ncancelled_write_bytes: 0\n", moved-1),
		fmt.Sprintf("task/%d/schedstat", pid): fmt.Sprintf("5 %d 1\n", int64(inLine*1e9)),
		fmt.Sprintf("task/%d/children", pid):  children,
	} {
		path := filepath.Join(p.dir, fmt.Sprint(pid), file)
		require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(p.t, os.WriteFile(path, []byte(content), 0o600))
	}
}

func TestAPodIsMeasuredByAllItsProcesses(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	m := NewMeter(Roots{Proc: proc.dir, Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet())
	shell := Target{CgroupParent: "/pod", PIDs: []int{7}}
	// The last process has a number that no process of this machine has.
	const last = 1 << 30
	proc.process(7, 100, 1, "8 9 ")
	proc.process(8, 1000, 2, fmt.Sprint(last, " "))
	proc.process(last, 10000, 4, "")
	first, err := m.usage(time.Unix(0, 0), shell)
	require.NoError(t, err, "process 9 has ended since")
	assert.Equal(t, use{inLine: 7, moved: 11100}, first.since(usage{}))

	proc.process(8, 1005, 3, "")
	require.NoError(t, os.RemoveAll(filepath.Join(proc.dir, fmt.Sprint(last))))
	second, err := m.usage(time.Unix(5, 0), shell)
	require.NoError(t, err)
	assert.Equal(t, use{inLine: 1, moved: 5}, second.since(first), "the figures of an ended process do not count any more")
}

// The CPU time of a pod without a cgroup is what its running processes have used. It never decreases.
func TestAPodWithoutACgroupIsMeasuredByTheCPUTimeOfItsProcesses(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	stat := func(pid, seconds int, children string) {
		proc.process(pid, 100, 0, children)
		content := fmt.Sprintf("%d (app) S 1 %d 0 0 0 0 0 0 0 0 %d %d", pid, pid, 40*seconds, 60*seconds) + strings.Repeat(" 0", 37) + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(proc.dir, fmt.Sprint(pid), "stat"), []byte(content), 0o600))
	}
	m := NewMeter(Roots{Proc: proc.dir, Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet())
	target := Target{PIDs: []int{7, 9}}
	stat(7, 1, "8 ")
	stat(8, 2, "")
	stat(9, 4, "")
	first, err := m.usage(time.Unix(0, 0), target)
	require.NoError(t, err)
	assert.InDelta(t, 7, first.since(usage{}).cpu, 1e-9)
	stat(7, 2, "")
	second, err := m.usage(time.Unix(5, 0), target)
	require.NoError(t, err)
	assert.Zero(t, second.since(first).cpu, "a process took its CPU time with it")
	require.NoError(t, os.RemoveAll(filepath.Join(proc.dir, "9")))
	_, err = m.usage(time.Unix(6, 0), target)
	require.Error(t, err, "a container's first process is gone")
}

func TestAPodWhoseProcessIsNotSeenIsNotMeasured(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	m := NewMeter(Roots{Proc: proc.dir, Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet())
	for _, pid := range []int{0, 7} {
		_, err := m.moved(Target{CgroupParent: "/pod", PIDs: []int{pid}})
		require.Error(t, err)
	}
	proc.process(7, 100, 1, "")
	require.NoError(t, os.Remove(filepath.Join(proc.dir, "7", "io")))
	_, err := m.moved(Target{CgroupParent: "/pod", PIDs: []int{7}})
	require.ErrorContains(t, err, "I/O of process 7")
}

func TestThisProcessIsMeasured(t *testing.T) {
	t.Parallel()
	m := NewMeter(Roots{Proc: "/proc", Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet())
	var used usage
	for used.cpu == 0 { // until this process has used a tick of kernel time
		var err error
		used, err = m.usage(time.Now(), Target{PIDs: []int{os.Getpid()}})
		require.NoError(t, err)
	}
	assert.Contains(t, used.moved, thread{process: os.Getpid()})
}

func TestAPodsCgroupIsAskedBeforeItsProcesses(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	for _, pid := range []int{7, 8} {
		proc.process(pid, 100, 1, "")
	}
	root := t.TempDir()
	write := func(file, content string) {
		path := filepath.Join(root, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	write("cgroup.controllers", "cpu io\n")
	m := NewMeter(Roots{Proc: proc.dir, Cgroup: root}, DefaultStalls(), DefaultQuiet())
	target := Target{CgroupParent: "/pod", PIDs: []int{7, 8}}

	used, err := m.usage(time.Unix(0, 0), target)
	require.NoError(t, err)
	assert.Equal(t, use{inLine: 2, moved: 200}, used.since(usage{}), "the sum over the running containers")

	write("pod/cpu.stat", "usage_usec 9000000\n")
	write("pod/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	write("pod/io.stat", "8:0 rbytes=3000 wbytes=4000 rios=1 wios=1 dbytes=0 dios=0\n")
	used, err = m.usage(time.Unix(0, 0), target)
	require.NoError(t, err)
	assert.Equal(t, use{cpu: 9, inLine: 5, moved: 7000}, used.since(usage{}))
}

func TestAForkBombIsNotFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	for pid := range 2 * mostProcesses {
		proc.process(pid+1, 10, 0, fmt.Sprint(pid+2))
	}
	threads := mostThreads
	assert.Len(t, NewMeter(Roots{Proc: proc.dir}, DefaultStalls(), DefaultQuiet()).family(1, &threads), mostProcesses)

	children := ""
	for pid := range 2 * mostProcesses {
		children += fmt.Sprint(pid+2, " ")
	}
	proc.process(1, 10, 0, children)
	assert.Len(t, NewMeter(Roots{Proc: proc.dir}, DefaultStalls(), DefaultQuiet()).family(1, &threads), mostProcesses, "all are children of one process")
}

// Where the kernel does not count by cgroup, each thread is a file to read, four times a second.
func TestAPodWithVeryManyThreadsIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	m := NewMeter(Roots{Proc: proc.dir, Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet())
	threads := func(pid, count int, children string) {
		proc.process(pid, 10, 1, children)
		for id := range count - 1 { // beside the first
			require.NoError(t, os.Symlink(fmt.Sprint(pid), filepath.Join(proc.dir, fmt.Sprint(pid), "task", fmt.Sprint(1000+id))))
		}
	}
	pod := Target{PIDs: []int{7, 8}}
	threads(7, mostThreads-1, "")
	threads(8, 1, "")
	assert.Len(t, m.inLine(pod), mostThreads)
	threads(8, 2, "")
	assert.Empty(t, m.inLine(pod), "one of the pod's threads is too many")
	_, err := m.usage(time.Unix(0, 0), pod)
	require.NoError(t, err, "what else is measured is known")

	left := 50
	threads(10, 100, "9 ")
	assert.Len(t, m.family(10, &left), 1+50)
	assert.Zero(t, left)
	assert.Len(t, m.family(10, &left), 1, "the containers of a pod share the bound")
}
