package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryModuleThatIsLinkedHasItsLicence(t *testing.T) {
	t.Chdir("../..")
	to := filepath.Join(t.TempDir(), "licenses")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-o", to}, &out))
	for _, path := range []string{"go@*/LICENSE", "k8s.io_client-go@*/LICENSE", "github.com_containerd_nri@*/LICENSE", "github.com_prometheus_client_golang@*/NOTICE"} {
		found, err := filepath.Glob(filepath.Join(to, path))
		require.NoError(t, err)
		require.Len(t, found, 1, path)
	}
	tests, err := filepath.Glob(filepath.Join(to, "*testify*"))
	require.NoError(t, err)
	require.Empty(t, tests, "modules that only tests use are not shipped")
}

func TestAModuleWithoutLicenceIsNotShipped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "license.go"), []byte("package x"), 0o600))
	err := collect(module{Path: "example.test/x", Version: "v1", Dir: dir}, t.TempDir())
	require.ErrorContains(t, err, "example.test/x v1 has no licence")
}
