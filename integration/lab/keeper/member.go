package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// members lists the processes of a run: those in its cgroups, and those whose root file system is
// in its folder, such as containers whose cgroup is elsewhere.
func members(run Run) ([]int, error) {
	found := map[int]bool{}
	dirs, err := cgroupDirs(run.Cgroup)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		pids, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			if gone(err) {
				continue
			}
			return nil, err
		}
		for field := range strings.FieldsSeq(string(pids)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				found[pid] = true
			}
		}
	}
	if err := addRooted(found, run); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// addRooted adds the processes whose root file system is made from the run's
// folder.
func addRooted(found map[int]bool, run Run) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	rooted := map[string]bool{} // by mount namespace
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err != nil {
			continue // a kernel thread, a zombie, or gone
		}
		is, known := rooted[namespace]
		if !known {
			mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
			if err != nil {
				continue
			}
			is = rootIsFrom(string(mounts), run)
			rooted[namespace] = is
		}
		if is {
			found[pid] = true
		}
	}
	return nil
}

// rootIsFrom reports whether mountinfo has a root that comes from the run's folder, as a bind mount
// or as the layers of an overlay. Other mounts from that folder do not count, because every process
// on the host may see them.
func rootIsFrom(mountinfo string, run Run) bool {
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) > 4 && fields[4] == "/" && strings.Contains(line, "/"+filepath.Base(run.Dir)+"/") {
			return true
		}
	}
	return false
}

// killMembers sends SIGKILL to all processes of a run except spare, and returns the processes that
// it found.
func killMembers(run Run, spare int) ([]int, error) {
	if err := thaw(run.Cgroup); err != nil {
		return nil, err
	}
	pids, err := members(run)
	if err != nil {
		return nil, err
	}
	pids = slices.DeleteFunc(pids, func(pid int) bool { return pid == spare })
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return pids, fmt.Errorf("killing process %d of run %s: %w", pid, run.ID, err)
		}
	}
	return pids, nil
}

// thaw continues frozen (paused) processes, which a signal cannot end in cgroup v1 before.
func thaw(cgroup string) error {
	dirs, err := cgroupDirs(cgroup)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		state := filepath.Join(dir, "freezer.state")
		if _, err := os.Stat(state); err != nil {
			continue // another hierarchy, or gone
		}
		if err := os.WriteFile(state, []byte("THAWED"), 0); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// gone reports whether err is the error of reading a cgroup that was just removed.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}
