package signals

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// The reasons why a signal cannot be measured. Every error of a reading wraps exactly one of them,
// and its cause if there is one.
var (
	// ErrAbsent means that there is no such file. If that is /proc/pressure, the kernel was built
	// without PSI or booted with psi=0.
	ErrAbsent = errors.New("file is absent")
	// ErrDisabled means that the kernel has PSI but needs psi=1 on its command line. The kernel
	// reports it on a read of the file if it was built to have PSI off.
	ErrDisabled = errors.New("PSI is disabled, the kernel needs psi=1 on its command line")
	// ErrRead means that the file exists and cannot be read.
	ErrRead = errors.New("file cannot be read")
	// ErrLine means that the file lacks the line with the signal.
	ErrLine = errors.New("line is missing")
	// ErrParse means that the file has another format.
	ErrParse = errors.New("not understood")
	// ErrCounter means that the kernel's counter decreased, or that no time passed for it. The next
	// sample is compared with this one.
	ErrCounter = errors.New("counter does not go forward")
)

// unread wraps the error with which reading a file failed. One that no system call returned is of what the file says.
func unread(path string, err error) error {
	name := ErrRead
	switch _, called := errors.AsType[*fs.PathError](err); {
	case !called:
		name = ErrParse
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		name = ErrAbsent
	case errors.Is(err, syscall.EOPNOTSUPP):
		name = ErrDisabled
	}
	return fmt.Errorf("%s: %w: %w", path, name, err)
}
