package keeper

import (
	"bytes"
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

// members lists the processes of a run: those in its cgroups and those that see
// a mount from its folder (a container whose cgroup is elsewhere still has its
// root there).
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
	if err := addViewers(found, run.Dir); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// addViewers adds the processes whose mount namespace has a mount from dir.
func addViewers(found map[int]bool, dir string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	sees := map[string]bool{} // by mount namespace
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err != nil {
			continue // a kernel thread, a zombie, or gone
		}
		seen, known := sees[namespace]
		if !known {
			mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
			if err != nil {
				continue
			}
			seen = bytes.Contains(mounts, []byte(dir+"/"))
			sees[namespace] = seen
		}
		if seen {
			found[pid] = true
		}
	}
	return nil
}

// killMembers sends SIGKILL to all processes of a run but spare, and returns
// those it found.
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

// thaw lets frozen (paused) processes go, which in cgroup v1 do not die of a
// signal before.
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

// gone says that err is what reading a cgroup gives that was just removed.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}
