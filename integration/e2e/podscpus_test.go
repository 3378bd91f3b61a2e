//go:build e2e && full

package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// The pods of the node may use one CPU only, and the others are idle. With adaptive, no more pods start than one CPU
// bears: without regard to that, the node would seem to be half idle, and more and more pods would start.
func TestAdaptiveCountsTheCPUsThatPodsCanUse(t *testing.T) {
	require.Greater(t, runtime.NumCPU(), 1, "CPUs")
	d := startDaemonWithRoom(t)
	d.configure(t, "{throttleConfig: {adaptive: {}}}")
	ns := namespace(t)
	createPod(t, ns, "first", herdPod(0)) // by its cgroup the daemon finds that of all pods
	eventually(t, "the first pod is ready", func() bool { return allReady(t, ns, 1) })
	leavePodsOneCPU(t)
	var s admin.Status
	eventually(t, "the daemon knows that pods can use one CPU", func() bool {
		s = d.status(t)
		return s.Cores.Usable == 1
	})
	assert.Equal(t, runtime.NumCPU(), s.Cores.Node)
	assert.Contains(t, s.Cores.Why, "kubepods has CPUs 0")

	const herd = 12
	deploy(t, ns, "herd", herd, herdPod(3))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 1+herd) })
	all := lives(t, ns)
	logLives(t, all[0].started, all)
	// The goal is a load of 1.7.
	assert.LessOrEqual(t, mostStarting(t, all), 3, "pods that start at a time")
	figure(t, "%d pods of 3 CPU-seconds on one CPU of %d: at most %d at a time", herd, s.Cores.Node, mostStarting(t, all))
}

// leavePodsOneCPU keeps the pods on the first CPU until the test ends.
func leavePodsOneCPU(t *testing.T) {
	t.Helper()
	root, file := filepath.Join("/sys/fs/cgroup/cpuset", node.Cgroup, "kubepods"), "cpuset.cpus"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		root = filepath.Join("/sys/fs/cgroup", node.Cgroup, "kubepods")
	}
	before, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	// In cgroup v1, a cgroup must have the CPUs of those below it: these come first, and last when it gets them back.
	var below []string
	require.NoError(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			below = append(below, path)
		}
		return err
	}))
	set := func(dir, cpus string) error { return os.WriteFile(filepath.Join(dir, file), []byte(cpus), 0o600) }
	for _, dir := range slices.Backward(below) {
		require.NoError(t, set(dir, "0"))
	}
	t.Cleanup(func() {
		for _, dir := range below {
			if err := set(dir, strings.TrimSpace(string(before))); !os.IsNotExist(err) {
				assert.NoError(t, err)
			}
		}
	})
}
