package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// layoutVersion is the version of the file's layout. A file of another version is ignored.
const layoutVersion = 2

// lastGoodFile keeps on disk the valid objects that select this node, so that after a reboot they are in force
// before the API server answers. A file without objects records that there were none. It is written with typed
// objects and read with documents, because each of these is judged by itself.
type lastGoodFile[O any] struct {
	Version int    `json:"version"`
	Node    string `json:"node"`
	Objects []O    `json:"objects"`
}

// recall reads the file, and reports whether there is one, also one without objects. A file that is damaged, or of another
// node, is logged and ignored, and so is an object in it that is not valid.
func (f *follower[T]) recall() (known bool) {
	defer f.caught("crd recall")
	found, err := f.load()
	switch {
	case f.path == "", errors.Is(err, fs.ErrNotExist):
	case err != nil:
		f.Log.WithError(err).Warnf("cannot use the %s on disk: those of the configuration file, if any, are in force until the API server answers", f.plural)
	default:
		f.disk, known = found, true
		f.Log.WithField(f.logged, f.names(found)).Infof("until the API server answers, the %s on disk are in force: %s", f.plural, f.names(found))
	}
	return known
}

// load reads the file.
func (f *follower[T]) load() (found []*T, err error) {
	path := f.path
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file lastGoodFile[map[string]any]
	// Unlike encoding/json, this keeps whole numbers whole.
	if err := utiljson.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: damaged: %w", path, err)
	}
	switch {
	case file.Version != layoutVersion:
		return nil, fmt.Errorf("%s: version: %d: must be %d", path, file.Version, layoutVersion)
	case file.Node != f.NodeName:
		return nil, fmt.Errorf("%s: node: %q: this node is %q", path, file.Node, f.NodeName)
	}
	for i, object := range file.Objects {
		// A later version of the daemon may have kept fields that this one does not know.
		one, _, errs := decode[T](object, f.check)
		if len(errs) > 0 { // another version of the daemon accepted it
			name, _, _ := unstructured.NestedString(object, "metadata", "name")
			f.Log.WithError(fmt.Errorf("%s: objects[%d]: %w", path, i, fieldErrors(errs))).
				Warnf("%s %s on disk is ignored until the API server answers", f.name, name)
			continue
		}
		found = append(found, one)
	}
	return found, nil
}

// keep writes the objects to disk, and logs when that fails.
func (f *follower[T]) keep(objects []*T) {
	if f.path != "" {
		f.keepFaults.Try(f.Log, f.save(objects),
			"the "+f.plural+" cannot be kept on disk: after a reboot they are not in force before the API server answers",
			"the "+f.plural+" are kept on disk again")
	}
}

// save writes the objects to the file.
func (f *follower[T]) save(objects []*T) error {
	file := lastGoodFile[*T]{Version: layoutVersion, Node: f.NodeName, Objects: append([]*T{}, objects...)}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	return f.Write(f.path, append(data, '\n'))
}
