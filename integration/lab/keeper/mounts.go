package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// private are folders of the host in which some program of the run keeps files at a fixed path. The
// run sees the folder's other entries unchanged. The named entries, and entries created later,
// belong to the run alone.
var private = map[string][]string{
	"/run":     {"cni", "containerd", "netns", "nri", "pod-pacemaker"},
	"/var/lib": {"cni", "containerd", "kubelet", "nri", "pod-pacemaker"},
	"/var/log": {"containers", "pods"},
}

// kernelSettings are settings that a kubelet would change on the whole host. The run sees the
// kubelet's values, and the host keeps its own.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// furnish mounts the run's private folders in this process's mount namespace, which must be the
// run's own. Backing files go below dir. It returns its mount points, also after an error.
func furnish(dir string) (mounted []string, err error) {
	// Mounts of the host still propagate to the run, but not the other way.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return nil, fmt.Errorf("parting from the host's mounts: %w", err)
	}
	for target, names := range private {
		if err := shadow(target, filepath.Join(dir, target), names); err != nil {
			return mounted, fmt.Errorf("making a private %s: %w", target, err)
		}
		mounted = append(mounted, target)
	}
	for name, value := range kernelSettings {
		target := filepath.Join("/proc/sys", name)
		done, err := pretend(target, filepath.Join(dir, "sys", name), value)
		if err != nil {
			return mounted, fmt.Errorf("hiding kernel setting %s: %w", name, err)
		}
		if done {
			mounted = append(mounted, target)
		}
	}
	// Volumes with mount propagation need a shared root.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return mounted, fmt.Errorf("sharing mounts within the run: %w", err)
	}
	return mounted, nil
}

// unfurnish unmounts what furnish mounted: a folder cannot be removed while this namespace has a
// mount in it.
func unfurnish(mounted []string) error {
	for _, target := range mounted {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", target, err)
		}
	}
	return nil
}

// shadow mounts the folder backing over target, and mounts target's entries in it, except the named
// ones.
func shadow(target, backing string, names []string) error {
	if err := os.MkdirAll(backing, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(target)
	if err != nil {
		return err
	}
	var bound []string
	for _, e := range entries {
		if slices.Contains(names, e.Name()) {
			continue
		}
		inside := filepath.Join(backing, e.Name())
		isBound, err := present(filepath.Join(target, e.Name()), inside, e.Type())
		if err != nil {
			return err
		}
		if isBound {
			bound = append(bound, inside)
		}
	}
	if err := unix.Mount(backing, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	// The mounts moved along to target. Unmounting them below the run's folder keeps the host's
	// files out of it when it is deleted.
	for _, inside := range bound {
		if err := unix.Unmount(inside, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return err
		}
	}
	return nil
}

// present makes an entry of the host visible as inside. bound says that it used a mount.
func present(original, inside string, kind fs.FileMode) (bound bool, err error) {
	switch {
	case kind&fs.ModeSymlink != 0:
		to, err := os.Readlink(original)
		if err != nil {
			return false, err
		}
		return false, os.Symlink(to, inside)
	case kind.IsDir():
		err = os.Mkdir(inside, 0o755)
	default:
		err = os.WriteFile(inside, nil, 0o644)
	}
	if err != nil {
		return false, err
	}
	err = unix.Mount(original, inside, "", unix.MS_BIND|unix.MS_REC, "")
	if errors.Is(err, fs.ErrNotExist) {
		return false, os.Remove(inside) // it was removed meanwhile
	}
	return err == nil, err
}

// pretend makes the file target read as value, unless it already does. done says that it used a
// mount.
func pretend(target, backing, value string) (done bool, err error) {
	now, err := os.ReadFile(target)
	if errors.Is(err, fs.ErrNotExist) || strings.TrimSpace(string(now)) == value {
		return false, nil
	}
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(backing), 0o755)); err != nil {
		return false, err
	}
	if err := os.WriteFile(backing, []byte(value+"\n"), 0o644); err != nil {
		return false, err
	}
	if err := unix.Mount(backing, target, "", unix.MS_BIND, ""); err != nil {
		return false, err
	}
	return true, nil
}
