package build

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// Both modules of this repository use the same versions, so that a new machine compiles each
// dependency once.
func TestModulesAgreeOnVersions(t *testing.T) {
	ours, shared := requirements(t, "../../go.mod"), 0
	for path, version := range requirements(t, "../go.mod") {
		if own, both := ours[path]; both {
			shared++
			assert.Equal(t, own, version, "%s in integration/go.mod and in go.mod: raise the older one with go get", path)
		}
	}
	assert.Positive(t, shared)
}

// requirements returns the versions that a go.mod requires, by module.
func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	parsed, err := modfile.ParseLax(file, text, nil)
	require.NoError(t, err)
	versions := map[string]string{}
	for _, r := range parsed.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions
}
