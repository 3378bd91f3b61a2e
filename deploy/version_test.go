package deploy

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// ownVersion matches a version of this project in a text.
var ownVersion = regexp.MustCompile(`(?:VERSION=|pod-pacemaker[: ]|appVersion: |(?m:^version: )|## \[)(v?\d+\.\d+\.\d+)`)

// The chart has the version of the next release. All other files have the same.
func TestOneVersionEverywhere(t *testing.T) {
	t.Parallel()
	text := read(t, "chart/pod-pacemaker/Chart.yaml")
	var chart struct{ Version, AppVersion string }
	require.NoError(t, yaml.Unmarshal([]byte(text), &chart))
	require.Equal(t, "v"+chart.Version, chart.AppVersion)

	files := append(documents(t), "../CHANGELOG.md", "../Containerfile", "chart/pod-pacemaker/Chart.yaml")
	for _, pattern := range []string{"base/*.yaml", "overlays/*/*.yaml", "chart/pod-pacemaker/*.md", "../.github/ISSUE_TEMPLATE/*"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		files = append(files, found...)
	}
	named := 0
	for _, file := range files {
		text := read(t, file)
		for i, m := range ownVersion.FindAllStringSubmatch(text, -1) {
			if file == "../CHANGELOG.md" && i > 0 {
				break // the rest is about earlier releases
			}
			named++
			require.Contains(t, []string{chart.Version, chart.AppVersion}, m[1], "%s: %s", file, m[0])
		}
	}
	require.GreaterOrEqual(t, named, 6)
}
