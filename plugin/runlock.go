package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// lockEvery is the time between two questions whether the lock is free.
const lockEvery = time.Second

// lockPath returns the path of the file whose lock is the right to pace the pods of the run
// folder: of the daemons that use the folder, one has it. Who closes the file lets the next have
// it; the kernel does when a daemon ends, however it does. The file stays.
func (o Options) lockPath() string { return filepath.Join(o.RunDir, "lock") }

// awaitLock takes the lock, and waits until it is free. busy is told who has it,
// once. The lock is nil if ctx ended first.
func (o Options) awaitLock(ctx context.Context, busy func(holder string)) (*os.File, error) {
	lock, holder, err := o.tryLock()
	if lock != nil || err != nil {
		return lock, err
	}
	busy(holder)
	_ = wait.PollUntilContextCancel(ctx, lockEvery, false, func(context.Context) (done bool, _ error) {
		lock, _, err = o.tryLock()
		return lock != nil || err != nil, nil
	}) // the only error is that ctx ended: then there is no lock
	return lock, err
}

// tryLock takes the lock; where another has it, both lock and err are nil, and
// holder is what that one wrote of itself.
func (o Options) tryLock() (lock *os.File, holder string, err error) {
	if err := os.MkdirAll(o.RunDir, 0o700); err != nil {
		return nil, "", fmt.Errorf("make the run folder: %w", err)
	}
	lock, err = os.OpenFile(o.lockPath(), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("open the run folder's lock: %w", err)
	}
	if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		said, err := io.ReadAll(io.LimitReader(lock, 256))
		return nil, strings.TrimSpace(string(said)), errors.Join(err, lock.Close())
	}
	if err == nil {
		err = o.sign(lock)
	}
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("lock %s: %w", o.lockPath(), err), lock.Close())
	}
	return lock, "", nil
}

// sign writes into the file who has the lock. A file that was removed while
// the lock was taken would be no lock at all.
func (o Options) sign(lock *os.File) error {
	mine, err := lock.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(o.lockPath())
	if err != nil {
		return err
	}
	if !os.SameFile(mine, there) {
		return errors.New("the file was replaced")
	}
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err = fmt.Fprintf(lock, "process %d, version %s\n", os.Getpid(), o.Version)
	return err
}
