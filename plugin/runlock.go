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

// runLock is the right to pace the pods of a run folder: of the daemons that use
// the folder, one has it. The kernel takes it back when that one ends, however it
// does.
type runLock struct{ file *os.File }

// lockPath returns the path of the lock's file. It stays when the daemon ends.
func (o Options) lockPath() string { return filepath.Join(o.RunDir, "lock") }

// awaitLock takes the lock, and waits until it is free. busy is told who has it,
// once. The lock is nil if ctx ended first.
func (o Options) awaitLock(ctx context.Context, busy func(holder string)) (*runLock, error) {
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
func (o Options) tryLock() (lock *runLock, holder string, err error) {
	if err := os.MkdirAll(o.RunDir, 0o700); err != nil {
		return nil, "", fmt.Errorf("make the run folder: %w", err)
	}
	file, err := os.OpenFile(o.lockPath(), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("open the run folder's lock: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		said, err := io.ReadAll(io.LimitReader(file, 256))
		return nil, strings.TrimSpace(string(said)), errors.Join(err, file.Close())
	case err != nil:
		return nil, "", errors.Join(fmt.Errorf("lock %s: %w", o.lockPath(), err), file.Close())
	}
	lock = &runLock{file}
	if err := lock.sign(o); err != nil {
		return nil, "", errors.Join(fmt.Errorf("lock %s: %w", o.lockPath(), err), lock.release())
	}
	return lock, "", nil
}

// sign writes into the file who has the lock. A file that was removed while
// the lock was taken would be no lock at all.
func (l *runLock) sign(o Options) error {
	mine, err := l.file.Stat()
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
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.file, "process %d, version %s\n", os.Getpid(), o.Version)
	return err
}

// release lets the next daemon have the lock. To be called once.
func (l *runLock) release() error { return l.file.Close() }
