package waiting

import (
	"path"
	"strings"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
)

// cgroupOf returns the folder of the container's cgroup below the root of the cgroup file system. It is
// empty if the runtime gives none, or one that is not understood or not named after the container.
func cgroupOf(ctr *api.Container) string {
	dir, err := cgroup.Directory(ctr.GetLinux().GetCgroupsPath())
	if err != nil || !strings.Contains(path.Base(dir), ctr.GetId()) {
		return ""
	}
	return dir
}
