package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/crd/wholefile"
)

const (
	// layoutVersion is the version of the file's layout; another is not read.
	layoutVersion = 2
	// mostKept bounds the file, in bytes.
	mostKept = 16 << 20
)

// lastGood keeps on disk what the API server said last, so that it is in force after a reboot
// before the API server answers: the good objects for this node, also that there were none.
type lastGood struct {
	path    string
	written []byte // what the file holds, as far as this process knows
	fault   string // the last fault of writing it that was logged
}

// lastGoodFile is the layout of the file; O is what its objects are read or written as.
type lastGoodFile[O any] struct {
	Version int    `json:"version"`
	Node    string `json:"node"`
	Objects []O    `json:"objects"`
}

// lastGoodObject is an object as it is written.
type lastGoodObject struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            any               `json:"spec"`
}

// remember returns the objects that the file at path holds, for the caller to put in force until the API server
// answers, and has what the API server says kept in that file. A file that is damaged, or of another node, is
// logged and left out, and so is an object in it that is not valid. ok is false where there is no file to use.
func (f *follower[T]) remember(path string) (found []*T, ok bool) {
	f.lastGood = &lastGood{path: path}
	found, err := f.load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil:
		f.log.WithError(err).Warnf("the %s on disk are left out: until the API server answers, those of the file are in force, if there are any", f.plural)
		return nil, false
	}
	f.mu.Lock()
	f.disk = found
	f.mu.Unlock()
	f.remembered = true
	f.log.WithField(f.logged, f.names(found)).Infof("until the API server answers, the %s that it told last are in force", f.plural)
	return found, true
}

// load reads the file.
func (f *follower[T]) load() (found []*T, err error) {
	path := f.lastGood.path
	data, err := readFileUpTo(path, mostKept)
	if err != nil {
		return nil, err
	}
	var file lastGoodFile[map[string]any]
	if len(data) > mostKept {
		return nil, fmt.Errorf("%s: it has more than %d bytes", path, mostKept)
	}
	// Unlike encoding/json, this keeps whole numbers whole.
	if err := utiljson.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: damaged: %w", path, err)
	}
	switch {
	case file.Version != layoutVersion:
		return nil, fmt.Errorf("%s: version: %d: must be %d", path, file.Version, layoutVersion)
	case file.Node != f.node.name:
		return nil, fmt.Errorf("%s: node: %q: this node is %q", path, file.Node, f.node.name)
	}
	for i, object := range file.Objects {
		// A later version may have had fields that this one leaves out.
		one, _, errs := decode(object, f.validate)
		if len(errs) > 0 { // an earlier or later version may have taken it for valid
			f.log.WithField("reason", fmt.Sprintf("%s: objects[%d]: %s", path, i, fieldErrors(errs))).
				Warnf("a %s on disk is left out until the API server answers", f.name)
			continue
		}
		found = append(found, one)
	}
	f.lastGood.written = data
	return found, nil
}

// keep keeps on disk what the API server says.
func (f *follower[T]) keep(objects []*T) {
	if f.lastGood == nil {
		return
	}
	fault := ""
	if err := f.save(objects); err != nil {
		fault = err.Error()
	}
	if fault != "" && fault != f.lastGood.fault {
		f.log.WithField("reason", fault).Warnf("the %s cannot be kept on disk: after a reboot they are not in force before the API server answers", f.plural)
	}
	f.lastGood.fault = fault
}

// save puts the objects into the file, unless they are there already. After a power cut the
// file holds them or what was there before, whole.
func (f *follower[T]) save(objects []*T) error {
	file := lastGoodFile[lastGoodObject]{Version: layoutVersion, Node: f.node.name, Objects: []lastGoodObject{}}
	for _, one := range objects {
		a := f.about(one)
		file.Objects = append(file.Objects, lastGoodObject{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: f.name},
			Metadata: metav1.ObjectMeta{Name: a.Name, UID: a.UID, Generation: a.Generation},
			Spec:     a.spec,
		})
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	if data = append(data, '\n'); string(data) == string(f.lastGood.written) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(f.lastGood.path), 0o700); err != nil {
		return err
	}
	if err := wholefile.Write(f.lastGood.path, data, 0o600); err != nil {
		return err
	}
	f.lastGood.written = data
	return nil
}
