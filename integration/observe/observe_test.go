package observe

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
)

const prefix = "pod_pacemaker_"

// metric is the set of labels of a metric, from one row of the table.
type metric map[string]bool

// documented reads the table of metrics.
func documented(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile(chart.Repository("deploy", "metrics.md"))
	require.NoError(t, err)
	all := map[string]metric{}
	for _, row := range regexp.MustCompile("(?m)^\\| `("+prefix+"[a-z_]+)` \\| ([a-z_, ]*) \\|").FindAllStringSubmatch(string(text), -1) {
		all[row[1]] = metric{}
		for label := range strings.SplitSeq(row[2], ", ") {
			all[row[1]][label] = true
		}
	}
	require.NotEmpty(t, all)
	return all
}

// given are the labels that Prometheus adds when it scrapes, and those of histograms.
var given = metric{"instance": true, "job": true, "node": true, "le": true}

// checkExpression parses PromQL, and fails the test if it names an unknown metric or label. It
// returns the project's metrics that the expression names.
func checkExpression(t *testing.T, where, expression string, known map[string]metric) []string {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	require.NoError(t, err, "%s: %s", where, expression)
	var names []string
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok || !strings.HasPrefix(selector.Name, prefix) {
			return nil
		}
		name := selector.Name
		if _, ok := known[name]; !ok { // a part of a histogram
			for _, part := range []string{"_bucket", "_count", "_sum"} {
				name = strings.TrimSuffix(name, part)
			}
		}
		require.Contains(t, known, name, "%s: %s", where, expression)
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel {
				require.True(t, known[name][matcher.Name] || given[matcher.Name], "%s: %s has no label %s", where, name, matcher.Name)
			}
		}
		names = append(names, name)
		return nil
	})
	return names
}

func TestAlertsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := documented(t)
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	read(t, &file, "deploy", "alerts", "pod-pacemaker.yaml")
	manual, err := os.ReadFile(chart.Repository("deploy", "operate.md"))
	require.NoError(t, err)
	tests, err := os.ReadFile(chart.Repository("deploy", "alerts", "pod-pacemaker_test.yaml"))
	require.NoError(t, err)
	seen := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			seen++
			checkExpression(t, rule.Alert, rule.Expr, known)
			require.Contains(t, []string{"info", "warning", "critical"}, rule.Labels["severity"], rule.Alert)
			require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			require.NotEmpty(t, rule.Annotations["description"], rule.Alert)
			require.Contains(t, string(manual), "\n### "+rule.Alert+"\n", "a section of deploy/operate.md for the alert")
			require.Contains(t, string(tests), rule.Alert, "a test of the rule")
		}
	}
	require.Positive(t, seen)
}

// The dashboard uses only existing metrics and labels, and shows the most important metrics.
func TestDashboardShowsTheMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := documented(t)
	var board struct {
		UID    string
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	read(t, &board, "deploy", "dashboard", "pod-pacemaker.json")
	require.Equal(t, "pod-pacemaker", board.UID)
	// The values of Grafana's variables.
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", "n1")
	ids, shown := map[int]bool{}, map[string]bool{}
	for _, panel := range board.Panels {
		require.False(t, ids[panel.ID], "two panels have the ID %d", panel.ID)
		ids[panel.ID] = true
		require.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
		if panel.Type != "row" {
			require.NotEmpty(t, panel.Targets, panel.Title)
		}
		for _, target := range panel.Targets {
			for _, name := range checkExpression(t, panel.Title, variables.Replace(target.Expr), known) {
				shown[name] = true
			}
		}
	}
	for _, name := range []string{"waiting", "starting", "slots", "wait_seconds", "start_seconds", "admissions_total", "refusals_total", "unpaced_total", "handler_seconds"} {
		require.True(t, shown[prefix+name], "%s is not on the dashboard", name)
	}
}

// read decodes a file of the repository, YAML or JSON.
func read(t *testing.T, into any, parts ...string) {
	t.Helper()
	data, err := os.ReadFile(chart.Repository(parts...))
	require.NoError(t, err)
	if strings.HasSuffix(parts[len(parts)-1], ".json") {
		require.NoError(t, json.Unmarshal(data, into))
		return
	}
	require.NoError(t, yaml.Unmarshal(data, into))
}

// checkExpression must find faults, otherwise the tests above are worthless.
func TestCheckFindsFaults(t *testing.T) {
	t.Parallel()
	_, err := parser.NewParser(parser.Options{}).ParseExpr(`sum(rate(pod_pacemaker_waiting[5m])`)
	require.Error(t, err)
	require.NotContains(t, documented(t), prefix+"no_such")
}
