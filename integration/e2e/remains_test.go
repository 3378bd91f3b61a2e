//go:build e2e

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// remains is what is on the node of pods, one line for each thing: its kind and its place.
type remains map[string]bool

// remaining returns what is on the node of pods and hooks, and the daemon's files.
func remaining(t *testing.T, d *daemon) remains {
	t.Helper()
	r := remains{}
	r.files(t, filepath.Dir(d.runDir))
	r.processes(t)
	r.mounts(t)
	r.cgroups(t)
	r.containers(t)
	return r
}

func (r remains) add(kind, format string, args ...any) {
	r[kind+" "+fmt.Sprintf(format, args...)] = true
}

// beyond returns the lines that were not there before.
func (r remains) beyond(before remains) (lines []string) {
	for line := range r {
		if !before[line] {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// files adds the daemon's files: its sockets, its state and its hook, but not the file in which it
// remembers what starts took, and not one that it was writing beside another when it was killed.
func (r remains) files(t *testing.T, folder string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != "costs.json" && !strings.HasPrefix(e.Name(), ".") {
			r.add("file", "%s", path)
		}
		return nil // a file may vanish meanwhile
	}))
}

func (r remains) processes(t *testing.T) {
	t.Helper()
	for _, pid := range podProcesses(t) {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err != nil {
			continue // the process has ended
		}
		words := strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
		kind := "process"
		if isShim(pid) {
			kind = "shim"
		}
		r.add(kind, "%d %s", pid, words)
	}
	for _, hook := range hooks(t) {
		r.add("hook", "%s", hook)
	}
}

func (r remains) mounts(t *testing.T) {
	t.Helper()
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", node.Containerd.PID()))
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			r.add("mount", "%s", fields[4])
		}
	}
}

func (r remains) cgroups(t *testing.T) {
	t.Helper()
	tops, err := filepath.Glob("/sys/fs/cgroup/*/" + node.Cgroup + "/kubepods") // cgroup version 1
	require.NoError(t, err)
	for _, top := range append(tops, filepath.Join("/sys/fs/cgroup", node.Cgroup, "kubepods")) {
		require.NoError(t, filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				r.add("cgroup", "%s", path)
			}
			return nil // a cgroup may vanish meanwhile
		}))
	}
}

func (r remains) containers(t *testing.T) {
	t.Helper()
	sandboxes, err := node.CRI().ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	require.NoError(t, err)
	for _, s := range sandboxes.Items {
		r.add("sandbox", "%s of %s/%s", s.Id, s.Metadata.Namespace, s.Metadata.Name)
	}
	containers, err := node.CRI().ListContainers(t.Context(), &runtimeapi.ListContainersRequest{})
	require.NoError(t, err)
	for _, c := range containers.Containers {
		r.add("container", "%s of %s", c.Id, c.PodSandboxId)
	}
}
