package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// teardownTimeout is how long processes may take to die of SIGKILL and cgroups to become empty. A
// machine that swaps needs a while.
const teardownTimeout = 60 * time.Second

// teardown removes everything of a run except the process spare. It can be repeated. A keeper calls
// it for its own run, and Sweep for a run whose keeper is dead. unmount unmounts the caller's
// mounts, once no process needs them any more.
func teardown(ctx context.Context, run Run, spare int, unmount func() error) error {
	ctx, cancel := context.WithTimeout(ctx, teardownTimeout)
	defer cancel()
	err := until(ctx, "the processes of run "+run.ID+" to end", func() (bool, error) {
		pids, err := killMembers(run, spare)
		return len(pids) == 0, err
	})
	if err != nil {
		return err
	}
	if err := errors.Join(unmount(), unmountBelow(run.Dir)); err != nil {
		return err
	}
	err = until(ctx, "the cgroups of run "+run.ID+" to be empty", func() (bool, error) {
		return removeCgroups(run.Cgroup)
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(run.Dir); err != nil {
		return fmt.Errorf("removing the folder of run %s: %w", run.ID, err)
	}
	return nil
}

// until calls done repeatedly, at first after short pauses, until it is true, fails or ctx ends.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// removeCgroups removes a cgroup and its descendants, and reports whether it could.
func removeCgroups(path string) (bool, error) {
	dirs, err := cgroupDirs(path)
	if err != nil {
		return false, err
	}
	for _, dir := range dirs {
		err := syscall.Rmdir(dir)
		switch {
		case err == nil || gone(err):
		case errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ENOTEMPTY):
			return false, nil
		default:
			return false, fmt.Errorf("removing cgroup %s: %w", dir, err)
		}
	}
	return true, nil
}

// unmountBelow unmounts everything below dir in this mount namespace. It must succeed before dir is
// deleted, because the mounts may be the host's own files.
func unmountBelow(dir string) error {
	// The last mount is unmounted first, because it may lie on top of others.
	for {
		points, err := mountsBelow(dir)
		if err != nil {
			return err
		}
		if len(points) == 0 {
			return nil
		}
		last := points[len(points)-1]
		if err := unix.Unmount(last, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmounting %s: %w", last, err)
		}
	}
}

// mountsBelow lists the mount points below dir in this mount namespace, in the order of their
// mounts.
func mountsBelow(dir string) ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape.Replace(fields[4])
		if strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	return points, nil
}

// unescape decodes the kernel's escapes in mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
