// Package wholefile replaces files in one step.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path, whose folder exists, and returns when that is on disk: a reader,
// also after a power cut, finds the old content or the new one, whole. The file belongs to the user of this
// process. Until it has its name it is called as [Unfinished] tells; after an error none is left.
// It does not follow a link at path, and replaces no folder.
func Write(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(Unfinished(path)))
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
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
	return errors.Join(dir.Sync(), dir.Close())
}

// Unfinished is the pattern of the names that Write gives a file before its own, as [filepath.Glob] has it: what is
// called so is left of a process that was killed.
func Unfinished(path string) string {
	dir, name := filepath.Split(path)
	return dir + "." + name + ".*"
}
