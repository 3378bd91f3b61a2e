package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/strvals"
)

// The values in the documentation are values that the chart accepts.
func TestDocumentedValuesRender(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(Repository("deploy", "*.md"))
	require.NoError(t, err)
	var text []byte
	for _, page := range pages {
		content, err := os.ReadFile(page)
		require.NoError(t, err)
		text = append(text, content...)
	}
	lines := regexp.MustCompile(`(?m)^helm (?:install|upgrade) pod-pacemaker (\S+) --namespace pod-pacemaker.*$`).FindAllStringSubmatch(string(text), -1)
	require.GreaterOrEqual(t, len(lines), 2)
	seen := 0
	try := func(assignment string) {
		values := map[string]any{}
		require.NoError(t, strvals.ParseInto(assignment, values), assignment)
		_, err := Render(Release{Name: "pod-pacemaker", Namespace: "pod-pacemaker"}, values)
		require.NoError(t, err, assignment)
		seen++
	}
	for _, line := range lines {
		require.Equal(t, Dir(), Repository(line[1]))
		for _, set := range regexp.MustCompile(`--set(?:-string)? (\S+)`).FindAllStringSubmatch(line[0], -1) {
			try(set[1])
		}
	}
	// The values in the text, like `startupTaint.enabled=true`.
	for _, set := range regexp.MustCompile("`([a-zA-Z]+(?:\\.[a-zA-Z]+)*=[^` ]+)`").FindAllStringSubmatch(string(text), -1) {
		try(set[1])
	}
	require.Greater(t, seen, 8)
}

// The daemon runs as root: its namespace has the label that allows that, which --create-namespace does not set.
func TestTheNamespaceIsLabelledEverywhere(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(Repository("deploy", "*.md"))
	require.NoError(t, err)
	for _, page := range append(pages, Repository("README.md"), filepath.Join(Dir(), "README.md"), filepath.Join(Dir(), "templates", notes)) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, line := range regexp.MustCompile(`.{0,200}--create-namespace`).FindAllString(string(text), -1) {
			require.Regexp(t, "(?:not with|and) --create-namespace$", line, page)
		}
	}
	files := installed(t, "{namespace: {create: true}}")
	require.Contains(t, files["namespace.yaml"], "pod-security.kubernetes.io/enforce: privileged")
}
