// Package cores finds how many CPUs the pods of a node can use. They may be fewer than the node has: where CPUs are
// isolated, kept from the pods by a cpuset or assigned to single containers, or where a quota holds the whole node, as one
// in a container.
package cores

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
)

// Cores are the CPUs that the pods of a node can use. The zero value is invalid; see Of.
type Cores struct {
	// Count is how many CPUs the pods can use at a time, at least 1. A part of a CPU, by a quota, counts as none.
	Count int
	// Node is how many CPUs the node has.
	Node int
	// CPUs are the CPUs on which a pod may run that has none for itself. It is empty if these are all.
	CPUs cpuset.CPUSet
	// Quota is how many CPUs a quota leaves the pods, and QuotaOf the folder of its cgroup. They are zero if no quota
	// leaves fewer than CPUs.
	Quota   float64
	QuotaOf string
	// From says in one line, for people, why pods can use no more. It is empty if they can use all.
	From string
}

// Of returns a node whose pods can use all of its CPUs.
func Of(count int) Cores { return Cores{Count: max(1, count), Node: max(1, count)} }

// Equal reports whether both are the same CPUs by the same rules.
func (c Cores) Equal(o Cores) bool {
	return c.Count == o.Count && c.Node == o.Node && c.From == o.From && c.CPUs.Equals(o.CPUs) && c.Quota == o.Quota && c.QuotaOf == o.QuotaOf
}

// String describes the number on one line, for people: "16 of 64: kubepods.slice has CPUs 48-63".
func (c Cores) String() string {
	if c.From == "" {
		return fmt.Sprint(c.Count)
	}
	return fmt.Sprintf("%d of %d: %s", c.Count, c.Node, c.From)
}

// Finder reads where the kernel and kubelet say which CPUs pods can use.
type Finder struct {
	// Sys and Cgroup are where the host's /sys and /sys/fs/cgroup are.
	Sys, Cgroup string
	// InPod reports whether this process is in a pod that has no CPU for itself: then pods may use the CPUs that it may.
	InPod bool
	// PodCgroup is the cgroup of any pod, as the runtime names it. If it is empty, the cgroup of all pods is found only in
	// its usual folder.
	PodCgroup string
	// CPUManager is the file in which kubelet keeps which CPUs it has assigned to single containers. It counts unless
	// InPod is true. It need not exist.
	CPUManager string
}

// CPUManagerState is the CPUManager of a kubelet with its usual folder.
const CPUManagerState = "/var/lib/kubelet/cpu_manager_state"

// The folders that the cgroup of all pods may have: with the systemd driver and with cgroupfs, and the same in kind.
var podsCgroups = [...]string{"kubepods.slice", "kubepods", "kubelet.slice/kubelet-kubepods.slice", "kubelet/kubepods"}

// Find reads the files, which does not block for long. A file that is missing restricts nothing. With an error, which
// names the file, the result leaves out what that file says; if the CPUs of the node are not known, Count is 0.
func (f Finder) Find() (Cores, error) {
	online, err := f.list(filepath.Join(f.Sys, "devices/system/cpu/online"))
	if err == nil && online.IsEmpty() {
		err = errors.New("devices/system/cpu/online: no CPU")
	}
	if err != nil {
		return Cores{}, fmt.Errorf("CPUs of the node: %w", err)
	}
	c, faults := Of(online.Size()), []error{}
	usable := online
	restrict := func(to cpuset.CPUSet, from string, err error) {
		switch left := usable.Intersection(to); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			faults = append(faults, err)
		case !left.IsEmpty() && left.Size() < usable.Size():
			usable, c.From = left, fmt.Sprintf(from, left)
		}
	}
	isolated, err := f.list(filepath.Join(f.Sys, "devices/system/cpu/isolated"))
	restrict(online.Difference(isolated), "all but the isolated CPUs are %s", err)
	pods := f.podsCgroup()
	set, err := f.podsCPUs(pods)
	restrict(set, cmp.Or(pods, "the cgroup of all pods")+" has CPUs %s", err)
	shared, err := f.shared()
	restrict(shared, "containers without CPUs of their own have CPUs %s", err)
	if usable.Size() < online.Size() {
		c.CPUs, c.Count = usable, usable.Size()
	}
	faults = append(faults, f.limit(&c, pods))
	return c, errors.Join(faults...)
}

// podsCgroup returns the folder of the cgroup of all pods, below the root of the cgroup file system; "" if it is not found.
func (f Finder) podsCgroup() string {
	if dir, err := cgroup.Directory(f.PodCgroup); err == nil {
		for names, n := strings.Split(strings.Trim(dir, "/"), "/"), 1; n <= len(names); n++ {
			if strings.Contains(names[n-1], "kubepods") {
				return path.Join(names[:n]...)
			}
		}
	}
	for _, dir := range podsCgroups {
		for _, hierarchy := range [...]string{"", "cpuset"} {
			if _, err := os.Stat(filepath.Join(f.Cgroup, hierarchy, dir)); err == nil {
				return dir
			}
		}
	}
	return ""
}

// podsCPUs returns the CPUs of the cgroup of all pods.
func (f Finder) podsCPUs(pods string) (cpuset.CPUSet, error) {
	set, err := f.list(filepath.Join(f.Cgroup, pods, "cpuset.cpus.effective"))
	if errors.Is(err, fs.ErrNotExist) { // cgroup v1
		set, err = f.list(filepath.Join(f.Cgroup, "cpuset", pods, "cpuset.effective_cpus"))
	}
	return set, err
}

// shared returns the CPUs that are assigned to no single container.
func (f Finder) shared() (cpuset.CPUSet, error) {
	if f.InPod {
		var own unix.CPUSet
		if err := unix.SchedGetaffinity(0, &own); err != nil {
			return cpuset.New(), fmt.Errorf("CPUs of this process: %w", err)
		}
		var ids []int
		for id := range len(own) * 64 {
			if own.IsSet(id) {
				ids = append(ids, id)
			}
		}
		return cpuset.New(ids...), nil
	}
	data, err := os.ReadFile(f.CPUManager)
	if err != nil {
		return cpuset.New(), err
	}
	var state struct {
		PolicyName    string `json:"policyName"`
		DefaultCPUSet string `json:"defaultCpuSet"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return cpuset.New(), fmt.Errorf("%s: %w", f.CPUManager, err)
	}
	return parse(f.CPUManager, state.DefaultCPUSet)
}

// limit applies the lowest quota of the cgroup of all pods and those above it, which only cgroup v2 shows in a container.
func (f Finder) limit(c *Cores, pods string) error {
	for dir := pods; ; dir = path.Dir(dir) {
		if dir == "." {
			dir = ""
		}
		quota, err := f.quota(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		most := cmp.Or(c.Quota, float64(cmp.Or(c.CPUs.Size(), c.Node)))
		if err == nil && quota > 0 && quota < most {
			c.Quota, c.QuotaOf, c.Count = quota, dir, max(1, int(quota))
			c.From = fmt.Sprintf("a quota of %s is %g", cmp.Or(dir, "the node's own cgroup"), quota)
		}
		if dir == "" {
			return nil
		}
	}
}

// quota returns how many CPUs the quota of a cgroup allows; 0 if it has none.
func (f Finder) quota(dir string) (float64, error) {
	file := filepath.Join(f.Cgroup, dir, "cpu.max")
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	if quota == "max" {
		return 0, nil
	}
	most, err := strconv.ParseFloat(quota, 64)
	every, periodErr := strconv.ParseFloat(period, 64)
	if err = errors.Join(err, periodErr); err != nil || !(most > 0) || !(every > 0) {
		return 0, fmt.Errorf("%s: %q: must be max or two numbers above 0", file, data)
	}
	return most / every, nil
}

// list reads a file with a list of CPUs, as "0-3,8".
func (f Finder) list(file string) (cpuset.CPUSet, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return cpuset.New(), err
	}
	return parse(file, string(data))
}

func parse(file, list string) (cpuset.CPUSet, error) {
	set, err := cpuset.Parse(strings.TrimSpace(list))
	if err != nil {
		return cpuset.New(), fmt.Errorf("%s: %w", file, err)
	}
	return set, nil
}
