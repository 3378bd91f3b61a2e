package keeper

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const hybrid = `25 20 0:22 / /sys rw,relatime - sysfs sysfs rw
30 25 0:26 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/systemd rw,nosuid - cgroup cgroup rw,xattr,name=systemd
33 30 0:29 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw
34 20 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
a line that is none
`

func TestParseHierarchies(t *testing.T) {
	t.Parallel()
	require.Equal(t, []hierarchy{
		{mount: "/sys/fs/cgroup/cpu,cpuacct", controllers: []string{"cpu", "cpuacct"}},
		{mount: "/sys/fs/cgroup/systemd", controllers: []string{"name=systemd"}},
		{mount: "/sys/fs/cgroup/unified", unified: true},
	}, parseHierarchies([]byte(hybrid)))
}

func TestFindOwnCgroup(t *testing.T) {
	t.Parallel()
	text := "9:name=systemd:/init.scope\n4:cpu,cpuacct:/a:b\n0::/user.slice\n"
	require.Equal(t, "/a:b", hierarchy{controllers: []string{"cpu", "cpuacct"}}.find(text))
	require.Equal(t, "/init.scope", hierarchy{controllers: []string{"name=systemd"}}.find(text))
	require.Equal(t, "/user.slice", hierarchy{unified: true}.find(text))
	require.Equal(t, "/", hierarchy{controllers: []string{"memory"}}.find(text))
}
