package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// lastGoodVersion is the version of the file's layout; another is not read.
const lastGoodVersion = 1

// LastGood keeps on disk what the API server said last, so that it is in force
// after a reboot before the API server answers: the config that was in force, or
// that there was none for this node. Make one with NewLastGood and give it to
// [Source.Remember].
type LastGood struct {
	path, node string
	written    []byte // what the file holds, as far as this process knows
}

// NewLastGood keeps the config of the named node in the file at path. It touches
// nothing yet; the file's folder is made when there is something to keep.
func NewLastGood(path, node string) *LastGood { return &LastGood{path: path, node: node} }

// remembered is what the API server said last.
type remembered struct {
	nodeUID types.UID                 // of the Node object; empty: there was none
	config  *v1alpha1.PacemakerConfig // nil: none selected the node
}

// lastGoodFile is the layout of the file; C is what its config is read or written as.
type lastGoodFile[C any] struct {
	Version int       `json:"version"`
	Node    string    `json:"node"`
	NodeUID types.UID `json:"nodeUID,omitempty"`
	Config  C         `json:"config"` // null: none selected the node
}

// load reads the file. Nil: there is none. A file that is damaged, or that was
// written for another node, is an error.
func (l *LastGood) load() (*remembered, error) {
	data, err := readFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := l.parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.path, err)
	}
	l.written = data
	return found, nil
}

func (l *LastGood) parse(data []byte) (*remembered, error) {
	var file lastGoodFile[map[string]any]
	if len(data) > maxBytes {
		return nil, fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	// Unlike encoding/json, this keeps whole numbers whole.
	if err := utiljson.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	switch {
	case file.Version != lastGoodVersion:
		return nil, fmt.Errorf("version: %d: must be %d", file.Version, lastGoodVersion)
	case file.Node != l.node:
		return nil, fmt.Errorf("node: %q: this node is %q", file.Node, l.node)
	case file.Config == nil:
		return &remembered{nodeUID: file.NodeUID}, nil
	}
	// A later version may have had fields that this one leaves out.
	config, _, errs := decode(file.Config)
	if len(errs) > 0 {
		return nil, invalid(errs)
	}
	return &remembered{nodeUID: file.NodeUID, config: config}, nil
}

// save puts r into the file, unless it is there already. After a power cut the
// file holds r or what was there before, whole.
func (l *LastGood) save(r remembered) error {
	file := lastGoodFile[*v1alpha1.PacemakerConfig]{Version: lastGoodVersion, Node: l.node, NodeUID: r.nodeUID}
	if r.config != nil {
		file.Config = &v1alpha1.PacemakerConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
			ObjectMeta: metav1.ObjectMeta{Name: r.config.Name, UID: r.config.UID, Generation: r.config.Generation},
			Spec:       r.config.Spec,
		}
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if string(data) == string(l.written) {
		return nil
	}
	if err := writeFile(l.path, data); err != nil {
		return err
	}
	l.written = data
	return nil
}

// writeFile replaces the file at path at once, and returns when that is on disk.
func writeFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}

// syncDir puts on disk which files a folder has.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
