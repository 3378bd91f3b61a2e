package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	cgroupfs = "/kubepods/burstable/pod7/abc"
	systemd  = "kubepods-burstable-pod7.slice:cri-containerd:abc"
	// expanded is where systemd puts the cgroup of the path above.
	expanded = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7.slice/cri-containerd-abc.scope"

	stat = "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnr_periods 0\n"
)

// tree makes a directory that looks like /sys/fs/cgroup: files by name below it.
func tree(t *testing.T, files map[string]string) Reader {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
	return Reader{Root: root}
}

func TestCPUSeconds(t *testing.T) {
	t.Parallel()
	v2 := func(dir string) map[string]string {
		return map[string]string{"cgroup.controllers": "cpu io memory\n", dir + "/cpu.stat": stat}
	}
	for name, c := range map[string]struct {
		files map[string]string
		path  string
	}{
		"v2, cgroupfs":           {v2("kubepods/burstable/pod7/abc"), cgroupfs},
		"v2, systemd":            {v2(expanded), systemd},
		"v2, a pod's parent":     {v2("kubepods/burstable/pod7"), "/kubepods/burstable/pod7"},
		"v2, a pod's slice path": {v2("kubepods.slice/kubepods-pod7.slice"), "/kubepods.slice/kubepods-pod7.slice"},
		"v2, a pod's slice name": {v2("kubepods.slice/kubepods-pod7.slice"), "kubepods-pod7.slice"},
		"v2, no slice given":     {v2("system.slice/cri-containerd-abc.scope"), ":cri-containerd:abc"},
		"v2, the root":           {v2(""), "/"},
		"v2, the root slice":     {v2(""), "-.slice"},
		"v2, usage not first": {map[string]string{
			"cgroup.controllers": "cpu\n", "a/cpu.stat": "user_usec 1\nusage_usec 2500000\n",
		}, "/a"},
		"v1, cpuacct alone":   {map[string]string{"cpuacct" + cgroupfs + "/cpuacct.usage": "2500000000\n"}, cgroupfs},
		"v1, cpu and cpuacct": {map[string]string{"cpu,cpuacct/" + expanded + "/cpuacct.usage": "2500000000\n"}, systemd},
		"v1, cpuacct and cpu": {map[string]string{"cpuacct,cpu/" + expanded + "/cpuacct.usage": "2500000000\n"}, systemd},
		"hybrid, cpuacct in v1": {map[string]string{
			"cpuacct" + cgroupfs + "/cpuacct.usage": "2500000000\n",
			"unified/cgroup.controllers":            "\n",
			"unified" + cgroupfs + "/cpu.stat":      "usage_usec 1\n",
		}, cgroupfs},
		"hybrid, no cpuacct in v1": {map[string]string{
			"memory" + cgroupfs + "/memory.stat": "cache 0\n",
			"unified/cgroup.controllers":         "cpu\n",
			"unified" + cgroupfs + "/cpu.stat":   stat,
		}, cgroupfs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tree(t, c.files).CPUSeconds(c.path)
			require.NoError(t, err)
			require.InDelta(t, 2.5, got, 1e-9)
		})
	}
}

func TestOtherFigures(t *testing.T) {
	t.Parallel()
	v2 := tree(t, map[string]string{
		"cgroup.controllers": "cpu io\n", "a/io.stat": ioStat, "a/cpu.pressure": pressure, "no-io/cpu.stat": stat,
	})
	v1 := tree(t, map[string]string{
		"blkio/a/blkio.throttle.io_service_bytes_recursive":    serviceBytesFile,
		"blkio/idle/blkio.throttle.io_service_bytes_recursive": "Total 0\n",
		"blkio/blkio.throttle.io_service_bytes_recursive":      serviceBytesFile,
		"blkio/old/blkio.throttle.io_service_bytes":            serviceBytesFile,
	})
	uncounted := tree(t, map[string]string{
		"blkio/a/blkio.throttle.io_service_bytes_recursive": "Total 0\n",
		"blkio/blkio.throttle.io_service_bytes_recursive":   "Total 0\n",
	})
	for _, r := range []Reader{v1, v2} {
		got, err := r.IOBytes("/a")
		require.NoError(t, err)
		require.InDelta(t, 12800, got, 0)
	}
	got, err := v2.CPUWaitSeconds("/a")
	require.NoError(t, err)
	require.InDelta(t, 2.5, got, 1e-9)
	got, err = v1.IOBytes("/idle")
	require.NoError(t, err, "only other cgroups moved data")
	require.Zero(t, got)

	for name, read := range map[string]func() (float64, error){
		"v1 counts no waiting":            func() (float64, error) { return v1.CPUWaitSeconds("/a") },
		"an old kernel counts no subtree": func() (float64, error) { return v1.IOBytes("/old") },
		"a newer kernel counts nothing":   func() (float64, error) { return uncounted.IOBytes("/a") },
		"the io controller is off":        func() (float64, error) { return v2.IOBytes("/no-io") },
		"pressure is off":                 func() (float64, error) { return v2.CPUWaitSeconds("/no-io") },
	} {
		_, err := read()
		require.Error(t, err, name)
	}
}

func TestCPUSecondsFails(t *testing.T) {
	t.Parallel()
	v2 := func(content string) map[string]string {
		return map[string]string{"cgroup.controllers": "cpu\n", "a/cpu.stat": content}
	}
	v1 := func(content string) map[string]string {
		return map[string]string{"cpuacct/a/cpuacct.usage": content}
	}
	for name, c := range map[string]struct {
		files map[string]string
		path  string
	}{
		"no cgroup file system":           {nil, "/a"},
		"v2, missing cgroup":              {v2(stat), "/b"},
		"v1, missing cgroup":              {v1("1\n"), "/b"},
		"v2, a file in place of a cgroup": {v2(stat), "/a/cpu.stat/b"},
		"no way out of the root":          {v2(stat), "/../../../../../../../../../etc"},
		"v2, no usage":                    {v2("nr_periods 0\n"), "/a"},
		"v2, empty":                       {v2(""), "/a"},
		"v2, negative":                    {v2("usage_usec -1\n"), "/a"},
		"v2, no number":                   {v2("usage_usec \n"), "/a"},
		"v1, empty":                       {v1(""), "/a"},
		"v1, no number":                   {v1("many\n"), "/a"},
		"v1, too large":                   {v1("18446744073709551616\n"), "/a"},
		"empty path":                      {v2(stat), ""},
		"a folder in place of a file":     {map[string]string{"cpuacct/a/cpuacct.usage/x": ""}, "/a"},
		"relative path":                   {v2(stat), "a"},
		"NUL":                             {v2(stat), "/a\x00"},
		"two parts":                       {v2(stat), "a.slice:cri-containerd"},
		"four parts":                      {v2(stat), "a.slice:cri-containerd:b:c"},
		"no name":                         {v2(stat), "a.slice:cri-containerd:"},
		"no slice":                        {v2(stat), "a:cri-containerd:b"},
		"slice with a slash":              {v2(stat), "a/b.slice:cri-containerd:c"},
		"name with a slash":               {v2(stat), "a.slice:cri-containerd:../c"},
		"prefix with a slash":             {v2(stat), "a.slice:../x:c"},
		"slice without a name":            {v2(stat), ".slice"},
		"slice with an empty part":        {v2(stat), "a--b.slice"},
		"slice that begins with a dash":   {v2(stat), "-a.slice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tree(t, c.files).CPUSeconds(c.path)
			require.Error(t, err)
		})
	}
}
