package waiting

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mostLinks is how many symbolic links a path may lead through, as for the kernel.
const mostLinks = 40

// HookFault tells why the hook's binary at path, which is absolute, is not used;
// empty: it is. The runtime executes it as root on the host, so no user but root and
// the daemon's own user may be able to change it or to put another in its place:
// the file, all folders that lead to it and all links on the way are theirs, and
// no other user can write there. In a folder with the sticky bit others can write, but
// not replace what is not theirs. The root folder is not judged: to a daemon in a container
// it is the image's, not the host's. And nothing is executed from a file system that is
// mounted noexec: every container that got the hook would fail.
func HookFault(path string) string {
	return walk{owners: [2]uint32{0, uint32(os.Geteuid())}, flags: MountFlags}.fault(path)
}

// walk follows a path as the kernel does.
type walk struct {
	owners [2]uint32 // who may change what is on the path
	// flags gives those of the mount that a path is on, as statfs(2) does.
	flags func(path string) (int64, error)
}

// MountFlags returns the flags of the mount that a path is on, as statfs(2) does.
func MountFlags(path string) (int64, error) {
	var on unix.Statfs_t
	err := unix.Statfs(path, &on)
	return on.Flags, err
}

func (w walk) fault(path string) string {
	rest := names(path)
	at, links := "/", 0
	info, err := os.Lstat(at)
	for {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "the hook cannot be used: there is no " + at
		case err != nil:
			return fmt.Sprintf("the hook cannot be used: %v", err)
		}
		if at != "/" {
			if fault := w.writable(path, at, info, len(rest) > 0); fault != "" {
				return fault
			}
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(at)
			if links++; err != nil || links > mostLinks {
				return fmt.Sprintf("the hook %s cannot be used: too many links, or %v", path, err)
			}
			if at = filepath.Dir(at); filepath.IsAbs(to) {
				at = "/"
			}
			rest = append(names(to), rest...)
		case len(rest) == 0 && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0):
			return fmt.Sprintf("the hook %s is not an executable file", path)
		case len(rest) == 0:
			return w.noExec(path, at)
		default:
			at, rest = filepath.Join(at, rest[0]), rest[1:] // no link is left in at: ".." is what it seems
		}
		info, err = os.Lstat(at)
	}
}

// noExec reports whether the hook, which is at a place, is on a mount that lets no process
// execute it.
func (w walk) noExec(path, at string) string {
	flags, err := w.flags(at)
	switch {
	case err != nil:
		return fmt.Sprintf("the hook %s cannot be used: its mount: %v", path, err)
	case flags&unix.ST_NOEXEC == 0:
		return ""
	}
	return fmt.Sprintf("the hook %s cannot be executed: %s is mounted noexec", path, w.mountOf(at))
}

// mountOf is the highest folder on the way to a place from which on nothing can be
// executed: that is where the mount is which bars it.
func (w walk) mountOf(at string) string {
	for at != "/" {
		above, err := w.flags(filepath.Dir(at))
		if err != nil || above&unix.ST_NOEXEC == 0 {
			break
		}
		at = filepath.Dir(at)
	}
	return at
}

// writable reports whether others can change what is at a place on the way to the hook.
func (w walk) writable(path, at string, info fs.FileInfo, leads bool) string {
	what := "the hook " + path
	if leads || info.IsDir() || info.Mode()&fs.ModeSymlink != 0 {
		what = fmt.Sprintf("the hook %s is not safe: %s, which leads to it,", path, at)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != w.owners[0] && st.Uid != w.owners[1] {
		return fmt.Sprintf("%s belongs to user %d, not to root", what, st.Uid)
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0: // its own mode means nothing
	case mode.IsDir() && mode&fs.ModeSticky != 0:
	case mode&0o022 != 0:
		return what + " can be written by group or others"
	}
	return ""
}

// names are the parts of a path.
func names(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
