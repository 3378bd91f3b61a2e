// Package wholefile replaces files atomically.
package wholefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Install copies a program to target with [Ensure] and mode 0755. It fails if the program is empty.
func Install(program, target string) (wrote bool, err error) {
	content, err := os.ReadFile(program)
	if err == nil && len(content) == 0 {
		err = fmt.Errorf("%s is empty", program)
	}
	if err != nil {
		return false, err
	}
	return Ensure(target, content, 0o755)
}

// Kept reports whether path is still a program as [Install] left it: a regular file of this size with mode 0755. It does
// not read the file. No empty program is kept.
func Kept(path string, size int64) bool {
	info, err := os.Lstat(path)
	return err == nil && size > 0 && info.Size() == size && info.Mode() == 0o755
}

// Ensure calls [Write] unless path is already a regular file with this content and mode that belongs to the user of
// this process. It reports whether it wrote. A needless copy of a program would cost memory: a process that runs the
// old file and one that runs the new file share none.
func Ensure(path string, content []byte, mode fs.FileMode) (wrote bool, err error) {
	if info, err := os.Lstat(path); err == nil && info.Mode() == mode {
		have, err := os.ReadFile(path)
		stat, ok := info.Sys().(*syscall.Stat_t)
		if err == nil && bytes.Equal(have, content) && ok && int(stat.Uid) == os.Geteuid() {
			return false, nil
		}
	}
	return true, Write(path, content, mode)
}

// Write replaces the file at path, whose folder must exist, and returns when the content is on disk. A reader finds
// either the old or the new content, also after a power cut. The file belongs to the user of this process. Write writes
// a temporary file beside path, and renames it. After an error it removes the temporary file. If the process is killed,
// that file stays until [Remove] removes it. Write does not follow a symbolic link at path, and does not replace a
// folder.
func Write(path string, content []byte, mode fs.FileMode) error {
	return write(path, content, mode, (*os.File).Sync)
}

// WriteSoon is [Write] for a caller that cannot wait for the disk, which may take seconds. A power cut within the next
// minute may leave an empty file.
func WriteSoon(path string, content []byte, mode fs.FileMode) error {
	return write(path, content, mode, func(*os.File) error { return nil })
}

func write(path string, content []byte, mode fs.FileMode, sync func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(unfinished(path)))
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), sync(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(sync(dir), dir.Close())
}

// Remove removes the file at path, and what processes have left that were killed during [Write]. It is no error if there
// is no such file.
func Remove(path string) error {
	left, err := filepath.Glob(unfinished(path))
	for _, name := range append(left, path) {
		if failed := os.Remove(name); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// unfinished returns the pattern of the temporary files of Write.
func unfinished(path string) string {
	dir, name := filepath.Split(path)
	return dir + "." + name + ".*"
}
