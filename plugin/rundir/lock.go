package rundir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// lockEvery is the time between two attempts to take the lock.
const lockEvery = time.Second

// LockPath returns the lock file of a run folder. Closing the file that AwaitLock or TryLock returns releases the lock. The
// kernel does that when a daemon ends, however it ends. The file stays.
func LockPath(dir string) string { return filepath.Join(dir, "lock") }

// AwaitLock blocks until it has the lock of the folder, or ctx ends and the lock is nil. If another daemon has it,
// AwaitLock first calls busy, once, with what that daemon wrote into the file. AwaitLock writes version, this daemon's,
// into the file for the others. If the daemon that ends removes the file meanwhile, AwaitLock locks a new one.
func AwaitLock(ctx context.Context, dir, version string, busy func(holder string)) (*os.File, error) {
	return await(ctx, func() (*os.File, string, error) { return TryLock(dir, version) }, busy)
}

// await is AwaitLock with a function that tries once.
func await(ctx context.Context, try func() (lock *os.File, holder string, err error), busy func(holder string)) (*os.File, error) {
	var lock *os.File
	var err error
	said := false
	_ = wait.PollUntilContextCancel(ctx, lockEvery, true, func(context.Context) (done bool, _ error) {
		var holder string
		lock, holder, err = try()
		switch {
		case errors.Is(err, errReplaced):
			err = nil
		case lock == nil && err == nil && !said:
			said = true
			busy(holder)
		}
		return lock != nil || err != nil, nil
	}) // the only error is that ctx ended: then there is no lock
	return lock, err
}

// errReplaced is wrapped by the error of TryLock if the file that it locked was removed or replaced meanwhile.
var errReplaced = errors.New("the file was replaced")

// TryLock takes the lock, and makes the folder if that is missing. If another daemon has the lock, lock and err are nil,
// and holder is what that daemon wrote into the file.
func TryLock(dir, version string) (lock *os.File, holder string, err error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, "", fmt.Errorf("make the run folder: %w", err)
	}
	path := LockPath(dir)
	lock, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("open the run folder's lock: %w", err)
	}
	if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		text, err := io.ReadAll(io.LimitReader(lock, 256))
		return nil, strings.TrimSpace(string(text)), errors.Join(err, lock.Close())
	}
	if err == nil {
		err = sign(lock, path, version)
	}
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("lock %s: %w", path, err), lock.Close())
	}
	return lock, "", nil
}

// sign writes this process into the lock file. It fails if the file was removed meanwhile: another daemon would lock a new
// one.
func sign(lock *os.File, path, version string) error {
	mine, err := lock.Stat()
	if err != nil {
		return err
	}
	current, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !os.SameFile(mine, current) {
		return errReplaced
	}
	// The text only tells others who has the lock. On a full file system the lock holds without it.
	_ = os.WriteFile(path, fmt.Appendf(nil, "process %d, version %s\n", os.Getpid(), version), 0o600)
	return nil
}
