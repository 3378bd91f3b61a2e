package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProcessOf(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]int{
		`{"ociVersion":"1.3.0","id":"c0ffee","status":"creating","pid":4711,"bundle":"/b","annotations":{"pid":"9"}}`: 4711,
		`{"pid": 12`:                   0, // cut off: more digits may follow
		`{"pid":-1}`:                   0,
		`{"pid":99999999999999999999}`: 0,
		`{"id":"c0ffee"}`:              0,
		"":                             0,
	} {
		assert.Equal(t, want, processOf([]byte(state)), state)
	}
}

func TestCgroupsOf(t *testing.T) {
	t.Parallel()
	const id = "c0ffee"
	for text, want := range map[string][]string{
		"0::/kubepods/pod1/c0ffee\n": {"/sys/fs/cgroup/kubepods/pod1/c0ffee", "/sys/fs/cgroup/unified/kubepods/pod1/c0ffee"},
		"4:memory:/kubepods/pod1/c0ffee\n3:cpu,cpuacct:/kubepods/pod1/c0ffee\n9:name=systemd:/kubepods/pod1/c0ffee\n": {
			"/sys/fs/cgroup/memory/kubepods/pod1/c0ffee", "/sys/fs/cgroup/cpu,cpuacct/kubepods/pod1/c0ffee", "/sys/fs/cgroup/systemd/kubepods/pod1/c0ffee",
		},
		"0::/kubepods.slice/cri-containerd-c0ffee.scope\n": {
			"/sys/fs/cgroup/kubepods.slice/cri-containerd-c0ffee.scope", "/sys/fs/cgroup/unified/kubepods.slice/cri-containerd-c0ffee.scope",
		},
		"0::/c0ffee/init\n4:memory:/\n": nil, // not the cgroup of this container alone
		"nonsense":                      nil,
		"":                              nil,
	} {
		assert.Equal(t, want, cgroupsOf(text, id), text)
	}
	assert.Nil(t, cgroupsOf("0::/kubepods\n", ""), "an empty ID is part of every name")
}

// The hook reads the runtime's state, but does not wait for it.
func TestCreationIsReadOnce(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	_, err = fmt.Fprintf(write, `{"id":"x","pid":%d,"bundle":"/b"}`, os.Getpid())
	require.NoError(t, err)
	own, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	name := filepath.Base(strings.TrimSpace(string(own)))
	c := creation{id: name, stdin: int32(read.Fd())}
	c.read()
	assert.EqualValues(t, -1, c.stdin, "it is read once")
	assert.Equal(t, cgroupsOf(string(own), name), c.cgroups)
}

// A cgroup that still has something in it stays.
func TestOnlyAnEmptyCgroupIsRemoved(t *testing.T) {
	t.Parallel()
	empty, full := filepath.Join(t.TempDir(), "empty"), t.TempDir()
	require.NoError(t, os.Mkdir(empty, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(full, "x"), nil, 0o600))
	c := creation{cgroups: []string{filepath.Join(full, "none"), full, empty}}
	c.remove()
	assert.NoDirExists(t, empty)
	assert.DirExists(t, full)
}
