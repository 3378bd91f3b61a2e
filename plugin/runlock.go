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

// lockEvery is the time between two attempts to take the lock.
const lockEvery = time.Second

// lockPath returns the lock file of the run folder. Of the daemons that use the folder, the one that has the lock paces
// pods. Closing the file releases the lock; the kernel does that when a daemon ends, however it ends. The file stays.
func (o Options) lockPath() string { return filepath.Join(o.RunDir, "lock") }

// awaitLock blocks until it has the lock, or ctx ends and the lock is nil. If another daemon has the lock, awaitLock first
// calls busy, once.
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

// tryLock takes the lock. If another daemon has it, lock and err are nil, and holder is what that daemon wrote into the
// file.
func (o Options) tryLock() (lock *os.File, holder string, err error) {
	if err := os.MkdirAll(o.RunDir, 0o700); err != nil {
		return nil, "", fmt.Errorf("make the run folder: %w", err)
	}
	lock, err = os.OpenFile(o.lockPath(), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("open the run folder's lock: %w", err)
	}
	if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		text, err := io.ReadAll(io.LimitReader(lock, 256))
		return nil, strings.TrimSpace(string(text)), errors.Join(err, lock.Close())
	}
	if err == nil {
		err = o.sign(lock)
	}
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("lock %s: %w", o.lockPath(), err), lock.Close())
	}
	return lock, "", nil
}

// sign writes this process into the lock file. It fails if the file was removed meanwhile: another daemon would lock a new
// one.
func (o Options) sign(lock *os.File) error {
	mine, err := lock.Stat()
	if err != nil {
		return err
	}
	current, err := os.Stat(o.lockPath())
	if err != nil {
		return err
	}
	if !os.SameFile(mine, current) {
		return errors.New("the file was replaced")
	}
	return os.WriteFile(o.lockPath(), fmt.Appendf(nil, "process %d, version %s\n", os.Getpid(), o.Version), 0o600)
}
