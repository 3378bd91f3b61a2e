package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The label instance has the name of the node, as the targets of other programs on that node may have.
func TestDashboardShowsNoOtherProgramOfTheNode(t *testing.T) {
	t.Parallel()
	series := promqltest.LoadedStorage(t, `load 1m
		pod_pacemaker_build_info{job="pod-pacemaker", instance="n1"} 1
		process_resident_memory_bytes{job="pod-pacemaker", instance="n1"} 25
		process_resident_memory_bytes{job="node-exporter", instance="n1"} 50
	`)
	seen := 0
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			if !strings.Contains(target.Expr, "process_") {
				continue
			}
			seen++
			require.Equal(t, []float64{25}, asked(t, series, strings.ReplaceAll(target.Expr, "$instance", "n1"), 0), panel.Title)
		}
	}
	require.Positive(t, seen)
}

// The figures at the top count what their names say, in these cases too.
func TestTheDashboardsFiguresCountWhatTheySay(t *testing.T) {
	t.Parallel()
	series := promqltest.LoadedStorage(t, `load 1m
		up{job="pod-pacemaker", instance="gone"} 1x89 0x10
		pod_pacemaker_connected{job="pod-pacemaker", instance="gone"} 1x80
		up{job="node-exporter", instance="gone"} 0x100
		up{job="pod-pacemaker", instance="lost"} 1x100
		pod_pacemaker_connected{job="pod-pacemaker", instance="lost"} 0x100
		up{job="pod-pacemaker", instance="well"} 1x100
		pod_pacemaker_connected{job="pod-pacemaker", instance="well"} 1x100
		pod_pacemaker_unpaced_total{job="pod-pacemaker", instance="well", reason="Adopted"} 0+1x100
		pod_pacemaker_unpaced_total{job="pod-pacemaker", instance="well", reason="Shadow"} 0+1x100
		pod_pacemaker_unpaced_total{job="pod-pacemaker", instance="well", reason="Disabled"} 0+1x100
		pod_pacemaker_unpaced_total{job="pod-pacemaker", instance="well", reason="NotAsked"} 0+1x100
	`)
	want := map[string]float64{"Nodes not connected": 2, "Unpaced, 1 h": 60}
	for _, panel := range panels(t) {
		figure, has := want[panel.Title]
		if !has {
			continue
		}
		delete(want, panel.Title)
		assert.Equal(t, []float64{figure}, asked(t, series, strings.ReplaceAll(panel.Targets[0].Expr, "$instance", ".*"), 95*time.Minute), panel.Title)
	}
	require.Empty(t, want)
}

type panel struct {
	Title   string
	Targets []struct{ Expr string }
}

// panels returns the panels of the dashboard.
func panels(t *testing.T) []panel {
	t.Helper()
	var board struct{ Panels []panel }
	read(t, &board, "deploy", "dashboard", "pod-pacemaker.json")
	return board.Panels
}

// asked returns the values that a query gives at this time since the series began.
func asked(t *testing.T, series storage.Queryable, expression string, at time.Duration) (all []float64) {
	t.Helper()
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1e6)
	query, err := engine.NewInstantQuery(t.Context(), series, nil, expression, time.Unix(0, 0).Add(at))
	require.NoError(t, err)
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	require.NoError(t, err)
	for _, sample := range vector {
		all = append(all, sample.F)
	}
	return all
}
