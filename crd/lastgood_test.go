package crd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// everything is a config with every field set.
func everything(t *testing.T) *v1alpha1.PacemakerConfig {
	t.Helper()
	found, err := Load(filepath.Join("testdata", "valid", "everything.yaml"))
	require.NoError(t, err)
	c := found.Config
	c.UID, c.Generation = "uid", 7
	return c
}

func TestKeptConfigsComeBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "config.json")
	f := keeper(path)
	_, err := f.load()
	require.ErrorIs(t, err, fs.ErrNotExist, "no file exists yet")

	for _, said := range [][]*v1alpha1.PacemakerConfig{{everything(t)}, {}} {
		require.NoError(t, f.save(said))
		found, err := keeper(path).load()
		require.NoError(t, err)
		require.Len(t, found, len(said))
		for i, c := range found {
			assert.Equal(t, []any{said[i].Name, types.UID("uid"), int64(7)}, []any{c.Name, c.UID, c.Generation})
			assert.Equal(t, said[i].Spec, c.Spec)
		}
	}
}

func TestNoFileIsReadThatCannotBeTrusted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ content, want string }{
		"empty":           {"", "damaged"},
		"cut":             {`{"version": 2, "node": "node-1", "obj`, "damaged"},
		"zeros":           {strings.Repeat("\x00", 64), "damaged"},
		"no object":       {`[]`, "damaged"},
		"no version":      {`{"node": "node-1"}`, "version: 0: must be 2"},
		"another version": {`{"version": 1, "node": "node-1"}`, "version: 1: must be 2"},
		"another node":    {`{"version": 2, "node": "node-2"}`, `node: "node-2": this node is "node-1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "config.json")
			require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
			_, err := keeper(path).load()
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, path)
		})
	}
}

// An object that is not valid does not affect the others.
func TestAnInvalidObjectOnDiskIsLeftOut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.json")
	f := keeper(path)
	log, hook := logtest.NewNullLogger()
	f.Log = log
	require.NoError(t, os.WriteFile(path, []byte(`{"version": 2, "node": "node-1", "objects": [
		{"metadata": {"name": "a"}, "spec": {"throttleConfig": {"maxConcurrent": {"value": 0}}}},
		{"metadata": {"name": "b"}, "spec": []},
		{"metadata": {"name": "c"}, "spec": {}}]}`), 0o600))
	found, err := f.load()
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "c", found[0].Name)
	require.Len(t, hook.AllEntries(), 2)
	assert.Contains(t, fmt.Sprint(hook.AllEntries()[0].Data[logrus.ErrorKey]), path+": objects[0]: spec.throttleConfig.maxConcurrent.value")
	assert.Contains(t, fmt.Sprint(hook.AllEntries()[1].Data[logrus.ErrorKey]), path+": objects[1]: spec")
}

func TestTheFileIsLeftWhereItCannotBeWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.Mkdir(path, 0o700)) // nothing can be renamed to a folder
	require.Error(t, keeper(path).save(nil))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "the new file that could not replace it is removed")
}

func FuzzKept(f *testing.F) {
	f.Add([]byte(`{"version":2,"node":"node-1","nodeUID":"n","objects":[{"metadata":{"name":"a"},"spec":{"throttleConfig":{"maxConcurrent":{"value":2}}}}]}`))
	f.Add([]byte(`{"version":2,"node":"node-1","objects":null}`))
	f.Add([]byte(`{"version":2,"node":"node-1","objects":[{"spec":{"priority":1e99}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		found, err := keeper(path).load()
		if err != nil {
			return
		}
		require.NoError(t, keeper(path).save(found))
		again, err := keeper(path).load()
		require.NoError(t, err)
		assert.Equal(t, found, again, "what was valid stays valid, and the same")
	})
}
