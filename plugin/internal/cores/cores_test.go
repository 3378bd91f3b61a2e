package cores

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/cpuset"
)

// host writes the files of a host, by their path below it.
func host(t *testing.T, files map[string]string) Finder {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content+"\n"), 0o600))
	}
	return Finder{Sys: filepath.Join(dir, "sys"), Cgroup: filepath.Join(dir, "cgroup"), CPUManager: filepath.Join(dir, "cpu_manager_state")}
}

// Pods can use the CPUs that all rules together leave them.
func TestPodsCanUseWhatEveryRuleLeavesThem(t *testing.T) {
	t.Parallel()
	const online, isolated = "sys/devices/system/cpu/online", "sys/devices/system/cpu/isolated"
	for name, c := range map[string]struct {
		files map[string]string
		pod   string // its cgroup
		want  string
		cpus  string
		quota float64
	}{
		"all":           {map[string]string{online: "0-63", isolated: ""}, "", "64", "", 0},
		"one is off":    {map[string]string{online: "0-2,4-7"}, "", "7", "", 0},
		"isolated CPUs": {map[string]string{online: "0-63", isolated: "16-63"}, "", "16 of 64: all but the isolated CPUs are 0-15", "0-15", 0},
		"a cpuset of the pods": {
			map[string]string{online: "0-63", "cgroup/kubepods.slice/cpuset.cpus.effective": "48-63"}, "",
			"16 of 64: kubepods.slice has CPUs 48-63", "48-63", 0,
		},
		"with cgroupfs": {
			map[string]string{online: "0-63", "cgroup/kubepods/cpuset.cpus.effective": "48-63"}, "",
			"16 of 64: kubepods has CPUs 48-63", "48-63", 0,
		},
		"with cgroup v1": {
			map[string]string{online: "0-3", "cgroup/cpuset/kubepods/cpuset.effective_cpus": "0"}, "",
			"1 of 4: kubepods has CPUs 0", "0", 0,
		},
		"below a cgroup root of kubelet's": {
			map[string]string{online: "0-3", "cgroup/own/kubepods/cpuset.cpus.effective": "0-1"}, "/own/kubepods/besteffort/pod1",
			"2 of 4: own/kubepods has CPUs 0-1", "0-1", 0,
		},
		"by systemd's name of a pod": {
			map[string]string{online: "0-3", "cgroup/kubepods.slice/cpuset.cpus.effective": "0-1"}, "kubepods-besteffort-pod1.slice",
			"2 of 4: kubepods.slice has CPUs 0-1", "0-1", 0,
		},
		"CPUs that kubelet assigned": {
			map[string]string{online: "0-15", "cpu_manager_state": `{"policyName":"static","defaultCpuSet":"0-3","entries":{"u":{"app":"4-15"}},"checksum":1}`}, "",
			"4 of 16: containers without CPUs of their own have CPUs 0-3", "0-3", 0,
		},
		"no policy of kubelet": {map[string]string{online: "0-15", "cpu_manager_state": `{"policyName":"none","defaultCpuSet":"","checksum":1}`}, "", "16", "", 0},
		"a node in a container": {
			map[string]string{
				online: "0-63", "cgroup/cpu.max": "250000 100000", "cgroup/kubelet.slice/kubelet-kubepods.slice/cpu.max": "max 100000",
				"cgroup/kubelet.slice/cpu.max": "max 100000",
			}, "",
			"2 of 64: a quota of the node's own cgroup is 2.5", "", 2.5,
		},
		"the lower of two quotas": {
			map[string]string{online: "0-63", "cgroup/cpu.max": "900000 100000", "cgroup/kubepods/cpu.max": "800000 100000"}, "",
			"8 of 64: a quota of kubepods is 8", "", 8,
		},
		"a quota beyond the CPUs": {
			map[string]string{online: "0-63", "cgroup/kubepods/cpu.max": "800000 100000", "cgroup/kubepods/cpuset.cpus.effective": "0-3"}, "",
			"4 of 64: kubepods has CPUs 0-3", "0-3", 0,
		},
		"less than a CPU":       {map[string]string{online: "0-1", "cgroup/cpu.max": "50000 100000"}, "", "1 of 2: a quota of the node's own cgroup is 0.5", "", 0.5},
		"CPUs that are all off": {map[string]string{online: "0-3", "cgroup/kubepods/cpuset.cpus.effective": "8-9"}, "", "4", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := host(t, c.files)
			f.PodCgroup = c.pod
			found, err := f.Find()
			require.NoError(t, err)
			assert.Equal(t, c.want, found.String())
			assert.Equal(t, c.cpus, found.CPUs.String())
			assert.InDelta(t, c.quota, found.Quota, 0)
			other := found
			assert.True(t, found.Equal(other))
			other.CPUs = cpuset.New(99)
			assert.False(t, found.Equal(other))
		})
	}
}

// In a pod that has no CPU for itself, this process may use what all such pods may.
func TestInAPodItsOwnCPUsCount(t *testing.T) {
	t.Parallel()
	f := host(t, map[string]string{"sys/devices/system/cpu/online": "0-1023", "cpu_manager_state": `{"defaultCpuSet":"7"}`})
	f.InPod = true
	found, err := f.Find()
	require.NoError(t, err)
	assert.Equal(t, runtime.NumCPU(), found.Count)
	assert.Equal(t, 1024, found.Node)
}

// A file that says nothing sensible is named, and the others count.
func TestAFileThatIsNotUnderstoodRestrictsNothing(t *testing.T) {
	t.Parallel()
	for file, content := range map[string]string{
		"sys/devices/system/cpu/isolated":       "some",
		"cgroup/kubepods/cpuset.cpus.effective": "0-",
		"cpu_manager_state":                     "{",
		"cgroup/kubepods/cpu.max":               "many 100000",
		"cgroup/cpu.max":                        "100000 0",
	} {
		f := host(t, map[string]string{"sys/devices/system/cpu/online": "0-7", file: content})
		found, err := f.Find()
		require.ErrorContains(t, err, file)
		assert.Equal(t, "8", found.String(), file)
	}
	for _, online := range []string{"", "x"} {
		found, err := host(t, map[string]string{"sys/devices/system/cpu/online": online}).Find()
		require.ErrorContains(t, err, "CPUs of the node: ")
		assert.Zero(t, found.Count)
	}
	found, err := Finder{Sys: "/nowhere"}.Find()
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Zero(t, found.Count)
}

// The files of the machine on which the tests run are understood.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	found, err := Finder{Sys: "/sys", Cgroup: "/sys/fs/cgroup", CPUManager: CPUManagerState}.Find()
	require.NoError(t, err)
	assert.Positive(t, found.Count)
	assert.LessOrEqual(t, found.Count, found.Node)
}
