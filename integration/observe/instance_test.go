package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The label instance has the name of the node, as the targets of other programs on that node may have.
func TestDashboardShowsNoOtherProgramOfTheNode(t *testing.T) {
	t.Parallel()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	read(t, &board, "deploy", "dashboard", "pod-pacemaker.json")
	series := promqltest.LoadedStorage(t, `load 1m
		pod_pacemaker_build_info{job="pod-pacemaker", instance="n1"} 1
		process_resident_memory_bytes{job="pod-pacemaker", instance="n1"} 25
		process_resident_memory_bytes{job="node-exporter", instance="n1"} 50
	`)
	engine := promqltest.NewTestEngine(t, false, time.Minute, 1e6)
	seen := 0
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			if !strings.Contains(target.Expr, "process_") {
				continue
			}
			seen++
			query, err := engine.NewInstantQuery(t.Context(), series, nil, strings.ReplaceAll(target.Expr, "$instance", "n1"), time.Unix(0, 0))
			require.NoError(t, err)
			vector, err := query.Exec(t.Context()).Vector()
			require.NoError(t, err)
			require.Equal(t, []float64{25}, values(vector), panel.Title)
			query.Close()
		}
	}
	require.Positive(t, seen)
}

// The figures at the top count what their names say, in these cases too.
func TestTheDashboardsFiguresCountWhatTheySay(t *testing.T) {
	t.Parallel()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	read(t, &board, "deploy", "dashboard", "pod-pacemaker.json")
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
		pod_pacemaker_unpaced_total{job="pod-pacemaker", instance="well", reason="Off"} 0+1x100
		pod_pacemaker_unpaced_total{job="pod-pacemaker", instance="well", reason="NotAsked"} 0+1x100
	`)
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1e6)
	want := map[string]float64{"Nodes not connected": 2, "Unpaced, 1 h": 60}
	for _, panel := range board.Panels {
		figure, asked := want[panel.Title]
		if !asked {
			continue
		}
		delete(want, panel.Title)
		query, err := engine.NewInstantQuery(t.Context(), series, nil, strings.ReplaceAll(panel.Targets[0].Expr, "$instance", ".*"), time.Unix(95*60, 0))
		require.NoError(t, err)
		vector, err := query.Exec(t.Context()).Vector()
		require.NoError(t, err)
		assert.Equal(t, []float64{figure}, values(vector), panel.Title)
		query.Close()
	}
	require.Empty(t, want)
}

func values(of promql.Vector) (all []float64) {
	for _, sample := range of {
		all = append(all, sample.F)
	}
	return all
}
