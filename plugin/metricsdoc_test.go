package plugin

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the table of metrics")

// A prometheus.Desc describes itself by String alone.
var descText = regexp.MustCompile(`fqName: "([^"]+)", help: "((?:[^"\\]|\\.)*)", (?:unit: "[^"]*", )?constLabels: {[^}]*}, variableLabels: {([^}]*)}`)

// metricsTable returns the rows of the documentation.
func metricsTable(t *testing.T, r *prometheus.Registry) string {
	t.Helper()
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		r.Describe(descs)
	}()
	var rows []string
	for d := range descs {
		m := descText.FindStringSubmatch(d.String())
		require.NotNil(t, m, d.String())
		if name, ok := strings.CutPrefix(m[1], "pod_pacemaker_"); ok {
			labels := strings.ReplaceAll(m[3], ",", ", ")
			rows = append(rows, fmt.Sprintf("| `pod_pacemaker_%s` | %s | %s |\n", name, labels, m[2]))
		}
	}
	slices.Sort(rows)
	return "| metric | labels | meaning |\n|---|---|---|\n" + strings.Join(rows, "")
}

// The rules and the dashboard are checked against this table.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../deploy/metrics.md", "<!-- metrics -->\n", "<!-- end of metrics -->\n"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s has no line %q", file, begin)
	table, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s has no line %q", file, end)

	want := metricsTable(t, newNode(t, noLimit).d.metrics())
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o644))
		return
	}
	assert.Equal(t, want, table, "go test ./plugin -run TestEveryMetricIsDocumented -update")
}
