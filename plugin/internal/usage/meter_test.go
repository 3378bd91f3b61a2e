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
	m := newMeter(Roots{Proc: proc.dir, Cgroup: "/nowhere"})
	shell := Place{CgroupParent: "/pod", Containers: []Container{{PID: 7}}}
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

func TestAPodWhoseProcessIsNotSeenIsNotMeasured(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	m := newMeter(Roots{Proc: proc.dir, Cgroup: "/nowhere"})
	for _, pid := range []int{0, 7} {
		_, err := m.moved(Place{CgroupParent: "/pod", Containers: []Container{{PID: pid}}})
		require.Error(t, err)
	}
	proc.process(7, 100, 1, "")
	require.NoError(t, os.Remove(filepath.Join(proc.dir, "7", "io")))
	_, err := m.moved(Place{CgroupParent: "/pod", Containers: []Container{{PID: 7}}})
	require.ErrorContains(t, err, "I/O of process 7")
}

func TestThisProcessIsMeasured(t *testing.T) {
	t.Parallel()
	m := newMeter(Roots{Proc: "/proc", Cgroup: "/nowhere"})
	var used usage
	for used.cpu == 0 { // until this process has used a tick of kernel time
		var err error
		used, err = m.usage(time.Now(), Place{Containers: []Container{{PID: os.Getpid()}}})
		require.NoError(t, err)
	}
	assert.Contains(t, used.moved, fmt.Sprint(os.Getpid()))
}

func TestAPodsCgroupIsAskedBeforeItsContainersAndProcesses(t *testing.T) {
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
	write("pod/a/cpu.stat", "usage_usec 1500000\n")
	write("pod/b/cpu.stat", "usage_usec 2000000\n")
	m := newMeter(Roots{Proc: proc.dir, Cgroup: root})
	place := Place{CgroupParent: "/pod", Containers: []Container{{"/pod/a", 7}, {"/pod/b", 8}}}

	used, err := m.usage(time.Unix(0, 0), place)
	require.NoError(t, err)
	assert.Equal(t, use{cpu: 3.5, inLine: 2, moved: 200}, used.since(usage{}), "the sum over the running containers")

	write("pod/cpu.stat", "usage_usec 9000000\n")
	write("pod/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	write("pod/io.stat", "8:0 rbytes=3000 wbytes=4000 rios=1 wios=1 dbytes=0 dios=0\n")
	used, err = m.usage(time.Unix(0, 0), place)
	require.NoError(t, err)
	assert.Equal(t, use{cpu: 9, inLine: 5, moved: 7000}, used.since(usage{}))
}

func TestAForkBombIsNotFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	for pid := range 2 * mostProcesses {
		proc.process(pid+1, 10, 0, fmt.Sprint(pid+2))
	}
	assert.Len(t, newMeter(Roots{Proc: proc.dir}).family(1), mostProcesses)
}
