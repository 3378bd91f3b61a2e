package sensor

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// The ways in which a sensor can be blind. Every error of a reading wraps exactly
// one of them, and the error below it where there is one.
var (
	// ErrAbsent: there is no such file. Of /proc/pressure: the kernel was built
	// without PSI, or booted with psi=0.
	ErrAbsent = errors.New("file is absent")
	// ErrDisabled: the kernel has PSI and it is switched off: it needs psi=1 on its
	// command line. Kernels that are built to have it off say so when the file is
	// read; others have no file then.
	ErrDisabled = errors.New("PSI is disabled, the kernel needs psi=1 on its command line")
	// ErrRead: the file is there and cannot be read.
	ErrRead = errors.New("file cannot be read")
	// ErrLine: the file lacks the line that has the signal.
	ErrLine = errors.New("line is missing")
	// ErrParse: the file is not understood.
	ErrParse = errors.New("not understood")
	// ErrCounter: the kernel's counter went backwards, or its clock stood still. The
	// next sample is compared with this one.
	ErrCounter = errors.New("counter does not go forward")
)

// unread names the error with which reading a file failed.
func unread(path string, err error) error {
	name := ErrRead
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		name = ErrAbsent
	case errors.Is(err, syscall.EOPNOTSUPP):
		name = ErrDisabled
	}
	return fmt.Errorf("%s: %w: %w", path, name, err)
}
