package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"
)

// keepSandboxesEvery is the least time between two writes of the facts.
const keepSandboxesEvery = time.Second

// sandboxFile is what a daemon leaves to the next on the same boot. What a sandbox was
// made by, nobody can tell the next one once the runtime was restarted, too: without
// the file it would refuse where the gate does no harm.
type sandboxFile struct {
	Sandboxes map[string]keptFacts `json:"sandboxes"`
}

type keptFacts struct {
	Old     bool   `json:"old,omitempty"`
	Strange string `json:"strange,omitempty"`
}

// sandboxesPath gives the path of the facts about sandboxes.
func (o Options) sandboxesPath() string { return filepath.Join(o.RunDir, "sandboxes.json") }

// removeUnfinished removes what a daemon that was killed had begun to write. Only the
// holder of the run folder's lock writes there, and calls this.
func removeUnfinished(path string) error {
	begun, err := filepath.Glob(path + ".*")
	for _, file := range begun {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// recall takes over what an earlier daemon left. No file is no error: nothing is known.
func (b *sandboxBook) recall(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var file sandboxFile
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		return fmt.Errorf("facts about sandboxes: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, facts := range file.Sandboxes {
		if _, seen := b.known[id]; !seen {
			b.known[id] = sandboxFacts{old: facts.Old, strange: facts.Strange}
		}
	}
	return nil
}

// keep writes the facts after they changed, until ctx ends, and then what is not
// written yet. What cannot be written is tried again.
func (b *sandboxBook) keep(ctx context.Context, path string, log logrus.FieldLogger) error {
	failed := false
	for {
		ended := false
		select {
		case <-b.changed:
		case <-ctx.Done():
			select {
			case <-b.changed:
				ended = true
			default:
				return nil
			}
		}
		err := b.write(path)
		switch {
		case err == nil && failed:
			log.Info("the facts about sandboxes are kept again")
		case err != nil && !failed:
			log.WithError(err).Warn("the next daemon will know less of the sandboxes: their facts cannot be kept; trying again")
		}
		if failed = err != nil; failed {
			b.change()
		}
		if ended {
			return nil
		}
		select {
		case <-time.After(keepSandboxesEvery):
		case <-ctx.Done():
		}
	}
}

// write replaces the file. It need not outlive the node: neither do the sandboxes.
func (b *sandboxBook) write(path string) error {
	data, err := json.Marshal(b.kept())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func (b *sandboxBook) kept() sandboxFile {
	b.mu.Lock()
	defer b.mu.Unlock()
	file := sandboxFile{Sandboxes: make(map[string]keptFacts, len(b.known))}
	for id, facts := range b.known {
		file.Sandboxes[id] = keptFacts{Old: facts.old, Strange: facts.strange}
	}
	return file
}
