package crd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// everything is a config with every field set.
func everything(t *testing.T) *v1alpha1.PacemakerConfig {
	t.Helper()
	c, err := Load(filepath.Join("testdata", "valid", "everything.yaml"))
	require.NoError(t, err)
	c.UID, c.Generation = "uid", 7
	return c
}

func TestLastGoodGivesBackWhatWasSaved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "config.json")
	l := NewLastGood(path, nodeName)
	found, err := l.load()
	require.NoError(t, err)
	assert.Nil(t, found, "there is no file yet")

	for _, said := range []remembered{
		{nodeUID: "n1", config: everything(t)},
		{nodeUID: "n1"},
		{},
	} {
		require.NoError(t, l.save(said))
		found, err := NewLastGood(path, nodeName).load()
		require.NoError(t, err)
		assert.Equal(t, said.nodeUID, found.nodeUID)
		if said.config == nil {
			assert.Nil(t, found.config)
			continue
		}
		assert.Equal(t, []any{said.config.Name, types.UID("uid"), int64(7)}, []any{found.config.Name, found.config.UID, found.config.Generation})
		assert.Equal(t, said.config.Spec, found.config.Spec)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "no other file is left beside it")
}

func TestLastGoodWritesOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.json")
	l := NewLastGood(path, nodeName)
	require.NoError(t, l.save(remembered{nodeUID: "n1"}))
	require.NoError(t, os.Remove(path))
	require.NoError(t, l.save(remembered{nodeUID: "n1"}))
	assert.NoFileExists(t, path)
	require.NoError(t, l.save(remembered{nodeUID: "n2"}))
	assert.FileExists(t, path)
}

func TestLastGoodReadsNoFileThatItCannotTrust(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ content, want string }{
		"empty":           {"", "damaged"},
		"cut":             {`{"version": 1, "node": "node-1", "conf`, "damaged"},
		"zeros":           {strings.Repeat("\x00", 64), "damaged"},
		"no object":       {`[]`, "damaged"},
		"too large":       {strings.Repeat(" ", maxBytes+1), "bytes"},
		"no version":      {`{"node": "node-1"}`, "version: 0: must be 1"},
		"another version": {`{"version": 2, "node": "node-1"}`, "version: 2: must be 1"},
		"another node":    {`{"version": 1, "node": "node-2"}`, `node: "node-2": this node is "node-1"`},
		"a wrong config":  {`{"version": 1, "node": "node-1", "config": {"metadata": {"name": "a"}, "spec": {"throttleConfig": {"maxConcurrent": {"value": 0}}}}}`, "spec.throttleConfig.maxConcurrent.value"},
		"a wrong form":    {`{"version": 1, "node": "node-1", "config": {"metadata": {"name": "a"}, "spec": []}}`, "spec"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "config.json")
			require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
			_, err := NewLastGood(path, nodeName).load()
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, path)
		})
	}
}

func TestLastGoodLeavesTheFileWhereItCannotWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.Mkdir(path, 0o700)) // nothing can be renamed to a folder
	require.Error(t, NewLastGood(path, nodeName).save(remembered{nodeUID: "n1"}))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "what could not take its place is removed")
}

func FuzzLastGood(f *testing.F) {
	f.Add([]byte(`{"version":1,"node":"node-1","nodeUID":"n","config":{"metadata":{"name":"a"},"spec":{"throttleConfig":{"maxConcurrent":{"value":2}}}}}`))
	f.Add([]byte(`{"version":1,"node":"node-1","config":null}`))
	f.Add([]byte(`{"version":1,"node":"node-1","config":{"spec":{"priority":1e99}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := NewLastGood("file", nodeName).parse(data)
		if err != nil || found.config == nil {
			return
		}
		assert.Empty(t, Validate(found.config))
	})
}
