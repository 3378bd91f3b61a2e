package keeper

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// hierarchy is one mounted cgroup tree.
type hierarchy struct {
	// mount is its mount point.
	mount string
	// unified is true for cgroup v2.
	unified bool
	// controllers are the controllers of a v1 tree ("name=systemd" is one), or those that a v2 tree
	// must provide.
	controllers []string
}

// hierarchies lists the cgroup trees that this process sees.
func hierarchies() ([]hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	all := parseHierarchies(mounts)
	for i, h := range all {
		if !h.unified {
			continue
		}
		controllers, err := os.ReadFile(filepath.Join(h.mount, "cgroup.controllers"))
		if err != nil {
			return nil, fmt.Errorf("looking for cgroups: %w", err)
		}
		all[i].controllers = strings.Fields(string(controllers))
	}
	return all, nil
}

func parseHierarchies(mountinfo []byte) []hierarchy {
	var all []hierarchy
	lines := bufio.NewScanner(bytes.NewReader(mountinfo))
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		place, source := strings.Fields(before), strings.Fields(after)
		if !ok || len(place) < 5 || len(source) < 3 {
			continue
		}
		h := hierarchy{mount: place[4], unified: source[0] == "cgroup2"}
		if source[0] != "cgroup" && !h.unified {
			continue
		}
		if slices.ContainsFunc(all, func(o hierarchy) bool { return o.mount == h.mount }) {
			continue
		}
		for option := range strings.SplitSeq(source[2], ",") {
			if !h.unified && option != "rw" && option != "ro" && option != "xattr" {
				h.controllers = append(h.controllers, option)
			}
		}
		all = append(all, h)
	}
	return all
}

// makeCgroups creates the run's cgroup in every hierarchy, with the controllers that a kubelet
// needs, and a child named system, into which it moves this process.
func makeCgroups(path string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := h.make(path); err != nil {
			return fmt.Errorf("making cgroup %s: %w", path, err)
		}
	}
	return nil
}

func (h hierarchy) make(path string) error {
	top, system := filepath.Join(h.mount, path), filepath.Join(h.mount, path, "system")
	if h.unified {
		if err := h.delegate(h.mount); err != nil {
			return err
		}
	}
	for _, dir := range []string{top, system} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if slices.Contains(h.controllers, "cpuset") && !h.unified {
			if err := inherit(dir, "cpuset.cpus", "cpuset.mems"); err != nil {
				return err
			}
		}
	}
	switch {
	case h.unified:
		if err := h.delegate(top); err != nil {
			return err
		}
		return join(system)
	case slices.Contains(h.controllers, "cpu"):
		// The weight of a node's pods against single processes is its number of cores.
		shares := strconv.Itoa(1024 * runtime.NumCPU())
		return os.WriteFile(filepath.Join(top, "cpu.shares"), []byte(shares), 0)
	case slices.Contains(h.controllers, "pids"), slices.Contains(h.controllers, "cpuacct"):
		// pids finds all processes again, and cpuacct counts their CPU time, unless it is one hierarchy
		// with cpu. In the others the run's services keep the weight of ordinary processes of the host.
		return join(system)
	}
	return nil
}

// delegate enables all controllers for the children of a v2 cgroup.
func (h hierarchy) delegate(dir string) error {
	if len(h.controllers) == 0 {
		return nil
	}
	enable := "+" + strings.Join(h.controllers, " +")
	err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(enable), 0)
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("%s holds processes, so its controllers cannot be given to cgroups below it: "+
			"run the lab on the host or in a container with the host's cgroup namespace (%w)", dir, err)
	}
	return err
}

func inherit(dir string, files ...string) error {
	for _, f := range files {
		value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), f))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f), value, 0); err != nil {
			return err
		}
	}
	return nil
}

func join(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0)
}

// homeCgroups lists the folders of this process's cgroups.
func homeCgroups() ([]string, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var home []string
	for _, h := range all {
		dir := filepath.Join(h.mount, h.find(string(own)))
		// If only a part of the tree is mounted, its top is the nearest folder.
		if !isDir(dir) {
			dir = h.mount
		}
		home = append(home, dir)
	}
	return home, nil
}

// find returns the path of this hierarchy in the text of /proc/PID/cgroup.
func (h hierarchy) find(text string) string {
	for line := range strings.Lines(text) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(part) != 3 {
			continue
		}
		if h.unified && part[0] == "0" || !h.unified && part[1] == strings.Join(h.controllers, ",") {
			return part[2]
		}
	}
	return "/"
}

// goHome moves this process back into its original cgroups.
func goHome(dirs []string) error {
	for _, dir := range dirs {
		if err := join(dir); err != nil {
			return fmt.Errorf("leaving the run's cgroups: %w", err)
		}
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// cgroupDirs lists the folders of a cgroup and of its descendants, in all hierarchies, deepest
// first.
func cgroupDirs(path string) ([]string, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, h := range all {
		err := filepath.WalkDir(filepath.Join(h.mount, path), func(dir string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it was removed meanwhile, or never existed
			}
			if err == nil && d.IsDir() {
				dirs = append(dirs, dir)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("listing cgroup %s: %w", path, err)
		}
	}
	slices.Reverse(dirs)
	return dirs, nil
}

// Controllers lists the cgroup controllers of this machine, of all hierarchies.
func Controllers() ([]string, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, h := range all {
		names = append(names, h.controllers...)
	}
	return names, nil
}
