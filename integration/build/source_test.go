package build

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

func TestStandaloneNamesPublishedModules(t *testing.T) {
	t.Parallel()
	mod, err := standalone([]byte(`module k8s.io/kubernetes

go 1.26.0

require (
	example.com/other v1.2.3
	example.com/newer v1.1.0
	k8s.io/api v0.0.0
	k8s.io/kubelet v0.0.0 // indirect
)

replace (
	example.com/other => example.com/fork v1.2.4
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kubelet => ../kubelet
)
`), "v1.36.3", []string{"example.com/newer@v1.2.0"})
	require.NoError(t, err)
	f, err := modfile.Parse("go.mod", mod, nil)
	require.NoError(t, err)
	versions := map[string]string{}
	for _, r := range f.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	require.Equal(t, map[string]string{"example.com/other": "v1.2.3", "example.com/newer": "v1.2.0", "k8s.io/api": "v0.36.3", "k8s.io/kubelet": "v0.36.3"}, versions)
	require.Len(t, f.Replace, 1)
	require.Equal(t, "example.com/fork", f.Replace[0].New.Path)
}

func TestStandaloneRefusesNonsense(t *testing.T) {
	t.Parallel()
	_, err := standalone([]byte("modul x"), "v1.0.0", nil)
	require.Error(t, err)
}

func TestEdited(t *testing.T) {
	t.Parallel()
	original := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(original, "a"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(original, "a", "b.go"), []byte("return no\n"), 0o400))

	dir, err := edited(original, filepath.Join(t.TempDir(), "src"), []edit{{"a/b.go", "return no", "return yes"}})
	require.NoError(t, err)
	code, err := os.ReadFile(filepath.Join(dir, "a", "b.go"))
	require.NoError(t, err)
	require.Equal(t, "return yes\n", string(code))

	_, err = edited(original, filepath.Join(t.TempDir(), "src"), []edit{{"a/b.go", "return never", "return yes"}})
	require.ErrorContains(t, err, "0 times, not once")
	_, err = edited(original, filepath.Join(t.TempDir(), "src"), []edit{{"a/missing.go", "x", "y"}})
	require.ErrorIs(t, err, os.ErrNotExist)
}
