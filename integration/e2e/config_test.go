//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The API server, by the shipped CRD, and `pod-pacemaker check` accept and refuse
// the same configurations and policies, and name the same field.
func TestAPIServerAndCheckAgree(t *testing.T) {
	for _, c := range []struct {
		folder string
		valid  bool
	}{
		{"valid", true},
		{"invalid", false},
		{"startpolicy/valid", true},
		{"startpolicy/invalid", false},
		{"startpolicy/unusable", true}, // whether groupBy is a JSONPath, no rule can say
	} {
		files, err := filepath.Glob(repository("crd", "testdata", c.folder, "*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, files, c.folder)
		for _, file := range files {
			t.Run(c.folder+"/"+filepath.Base(file), func(t *testing.T) {
				out, err := node.Kubectl(t.Context(), "create", "--dry-run=server", "--validate=strict", "-f", file)
				if c.valid {
					assert.NoError(t, err, "%s", out)
					return
				}
				require.Error(t, err, "%s", out)
				assert.Contains(t, string(out), faultOf(t, file))
			})
		}
	}
}

// faultOf is the field that a bad configuration has to be refused for: its first
// line, a comment.
func faultOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(data), "\n")
	field, ok := strings.CutPrefix(first, "# ")
	require.True(t, ok, "%s begins with the field in a comment", file)
	return field
}
