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

// mostLinks is how many symbolic links a path may contain. It is the kernel's limit.
const mostLinks = 40

// HookFault returns why the hook's binary at path is not used, or "" if it is. The path is absolute. The runtime
// executes the binary as root on the host, so only root and the daemon's own user may be able to change or
// replace it: they own the file, all folders that lead to it and all links on the way, and no other user can
// write there. Others may write to a folder with the sticky bit, because they cannot replace files of other
// users there. The root folder is not checked: in a container it belongs to the image, not to the host. The
// file system of the binary must not be mounted noexec: every container with the hook would fail.
func HookFault(path string) string {
	return walk{owners: [2]uint32{0, uint32(os.Geteuid())}, flags: mountFlags}.fault(path)
}

// walk follows a path as the kernel does.
type walk struct {
	owners [2]uint32                        // users who may change what is on the path
	flags  func(path string) (int64, error) // mountFlags, except in tests
}

// mountFlags returns the flags of the mount that contains path, as statfs(2) does.
func mountFlags(path string) (int64, error) {
	var on unix.Statfs_t
	err := unix.Statfs(path, &on)
	return on.Flags, err
}

func (w walk) fault(path string) string {
	at, rest, links := "/", names(path), 0
	for {
		info, err := os.Lstat(at)
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
			at, rest = filepath.Join(at, rest[0]), rest[1:] // at contains no link, so ".." is its parent
		}
	}
}

// noExec returns why the hook, whose file is at, cannot be executed from its mount, or "" if it can.
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

// mountOf returns where the noexec mount that contains at is mounted: the highest parent from which on nothing
// can be executed.
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

// writable returns how other users can change what is at, or "" if they cannot. leads reports whether at is a
// folder or a link on the way to the hook.
func (w walk) writable(path, at string, info fs.FileInfo, leads bool) string {
	what := "the hook " + path
	if leads || info.IsDir() || info.Mode()&fs.ModeSymlink != 0 {
		what = fmt.Sprintf("the hook %s is not safe: %s, which leads to it,", path, at)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != w.owners[0] && st.Uid != w.owners[1] {
		return fmt.Sprintf("%s belongs to user %d, not to root", what, st.Uid)
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0: // the mode of a link has no meaning
	case mode.IsDir() && mode&fs.ModeSticky != 0:
	case mode&0o022 != 0:
		return what + " can be written by group or others"
	}
	return ""
}

// names returns the parts of a path.
func names(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
