package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// own returns this process's cgroup on the host's real file system, by the name that a Reader takes, and whether the
// host has a cgroup hierarchy that counts CPU time.
func own(t *testing.T) (Reader, string, bool) {
	t.Helper()
	v1, v2 := memberships(t)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		mount, system := strings.Fields(before), strings.Fields(after)
		root, point := mount[3], mount[4]
		member := v2
		if system[0] == "cgroup" && strings.Contains(","+system[2]+",", ",cpuacct,") {
			member = v1
		} else if system[0] != "cgroup2" || point != "/sys/fs/cgroup" {
			continue
		}
		// A container can see its cgroup's full path, but only its own part of the tree.
		below, err := filepath.Rel(root, member)
		require.NoError(t, err)
		return Reader{Root: "/sys/fs/cgroup"}, filepath.Join("/", below), true
	}
	return Reader{Root: "/sys/fs/cgroup"}, "/", false
}

func memberships(t *testing.T) (v1, v2 string) {
	t.Helper()
	membership, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	for line := range strings.Lines(string(membership)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case part[0] == "0":
			v2 = part[2]
		case strings.Contains(","+part[1]+",", ",cpuacct,"):
			v1 = part[2]
		}
	}
	return v1, v2
}

func processSeconds(t *testing.T) float64 {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return (time.Duration(usage.Utime.Nano()) + time.Duration(usage.Stime.Nano())).Seconds()
}

// On the real kernel, the cgroup of this process uses at least the CPU time of the process.
func TestHost(t *testing.T) {
	t.Parallel()
	r, path, ok := own(t)
	before, err := r.CPUSeconds(path)
	if !ok {
		require.Error(t, err, "this host counts no CPU time by cgroup")
		return
	}
	require.NoError(t, err)
	require.Positive(t, before)

	const burn = 0.1 // seconds; the kernel may account in ticks of 0.01
	start := processSeconds(t)
	for processSeconds(t)-start < burn {
	}
	after, err := r.CPUSeconds(path)
	require.NoError(t, err)
	require.Greater(t, after-before, burn/2)
	t.Logf("cgroup %s used %.3f s while this process used %.3f s", path, after-before, processSeconds(t)-start)

	_, err = r.CPUSeconds(filepath.Join(path, "no-such-cgroup"))
	require.Error(t, err)
}
