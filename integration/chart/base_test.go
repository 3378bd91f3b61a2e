package chart

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write deploy/base again")

const baseHeader = "# Rendered from deploy/chart/pod-pacemaker by `make generate`: change it there.\n"

// ofHelm matches the labels of what Helm has installed.
var ofHelm = regexp.MustCompile(`(?m)^ *(app\.kubernetes\.io/managed-by|helm\.sh/chart): .*\n`)

// baseFiles returns the files of deploy/base that come from the chart.
func baseFiles(t *testing.T) map[string]string {
	t.Helper()
	files, err := Render(Release{Name: "pod-pacemaker", Namespace: "pod-pacemaker"}, map[string]any{
		"namespace": map[string]any{"create": true},
		"crds":      map[string]any{"install": false}, // kustomize takes them from deploy/crds
	})
	require.NoError(t, err)
	for name, text := range files {
		files[name] = baseHeader + strings.TrimLeft(ofHelm.ReplaceAllString(text, ""), "\n")
	}
	return files
}

func TestBaseMatchesTheChart(t *testing.T) {
	t.Parallel()
	want := baseFiles(t)
	if *update {
		for name, text := range want {
			require.NoError(t, os.WriteFile(Repository("deploy", "base", name), []byte(text), 0o644))
		}
	}
	for name, text := range want {
		got, err := os.ReadFile(Repository("deploy", "base", name))
		require.NoError(t, err, "`make generate` writes it")
		require.Equal(t, text, string(got), "deploy/base/%s: `make generate` writes it", name)
	}
	// The folder and the kustomization have no other files.
	var resources []string
	for name := range want {
		resources = append(resources, name)
	}
	data, err := os.ReadFile(Repository("deploy", "base", "kustomization.yaml"))
	require.NoError(t, err)
	var kustomization struct{ Resources []string }
	require.NoError(t, yaml.Unmarshal(data, &kustomization))
	require.ElementsMatch(t, append(resources, "../crds"), kustomization.Resources)
	present, err := filepath.Glob(Repository("deploy", "base", "*"))
	require.NoError(t, err)
	require.Len(t, present, len(want)+1)
}
