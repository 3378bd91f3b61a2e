package build

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Cache keeps finished builds in folders below Dir. Several processes may use
// one cache at the same time: a file lock lets one of them build.
type Cache struct {
	// Dir is the cache's folder. It is created if it is missing.
	Dir string
	// Progress receives the progress of builds. It may be nil.
	Progress Progress
}

// unfinished is the prefix of folders that are being filled. If one exists while the lock is held,
// a dead build has left it.
const unfinished = "unfinished-"

// Entry returns the cache's folder for a name and ingredients. If there is none yet, it calls fill
// with an empty folder to fill. The name is for people; the ingredients identify the content.
func (c Cache) Entry(ctx context.Context, name string, ingredients []string, fill func(dir string) error) (string, error) {
	hash := sha256.New()
	for _, s := range ingredients {
		fmt.Fprintf(hash, "%d:%s\n", len(s), s)
	}
	final := filepath.Join(c.Dir, fmt.Sprintf("%s-%x", name, hash.Sum(nil)[:6]))
	if isDir(final) {
		return final, nil
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return "", fmt.Errorf("making the build cache: %w", err)
	}
	unlock, err := lockFile(ctx, filepath.Join(c.Dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("waiting for another build to leave the cache %s: %w", c.Dir, err)
	}
	defer unlock()
	if isDir(final) {
		return final, nil
	}
	if err := c.fillAndRename(final, fill); err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	return final, nil
}

func (c Cache) fillAndRename(final string, fill func(dir string) error) (err error) {
	stale, err := filepath.Glob(filepath.Join(c.Dir, unfinished+"*"))
	if err != nil {
		return err
	}
	for _, dir := range stale {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing what a dead build left: %w", err)
		}
	}
	dir, err := os.MkdirTemp(c.Dir, unfinished)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := fill(dir); err != nil {
		return err
	}
	return os.Rename(dir, final)
}

func (c Cache) step(name string, done, total int) {
	if c.Progress == nil {
		return
	}
	c.Progress.Step(name, done, total)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lockFile takes an exclusive lock on path, and waits for it until ctx ends. The lock ends with the
// process at the latest.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fs.FileMode(0o644))
	if err != nil {
		return nil, err
	}
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-retry.C:
		}
	}
}
