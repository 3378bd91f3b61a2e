package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheCgroupIsRemovedInEachHierarchy(t *testing.T) {
	t.Parallel()
	const cgroup = "/kubepods/pod1/c0ffee"
	root := t.TempDir()
	for _, hierarchy := range []string{"", "memory", "cpu,cpuacct", "unified"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, hierarchy, cgroup), 0o700))
	}
	require.NoError(t, os.Symlink("cpu,cpuacct", filepath.Join(root, "cpu")))
	require.NoError(t, os.WriteFile(filepath.Join(root, "cgroup.procs"), nil, 0o600))
	removeCgroup(root, "")
	require.DirExists(t, filepath.Join(root, cgroup))
	removeCgroup(root, cgroup)
	for _, hierarchy := range []string{"", "memory", "cpu,cpuacct", "unified"} {
		assert.NoDirExists(t, filepath.Join(root, hierarchy, cgroup))
		assert.DirExists(t, filepath.Join(root, hierarchy, filepath.Dir(cgroup)), "the cgroup of the pod stays")
	}
	removeCgroup(root+"/none", cgroup)
}

// A cgroup that still has something in it stays.
func TestOnlyAnEmptyCgroupIsRemoved(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	full := filepath.Join(root, "a", "full")
	require.NoError(t, os.MkdirAll(filepath.Join(full, "below"), 0o700))
	removeCgroup(root, "/full")
	assert.DirExists(t, full)
}
