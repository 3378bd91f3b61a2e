//go:build e2e && full

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dto "github.com/prometheus/client_model/go"
)

// prometheus is Prometheus' store and engine, scraping one daemon.
type prometheus struct {
	db     *tsdb.DB
	engine *promql.Engine
	times  []time.Time // times of the scrapes
}

func newPrometheus(t *testing.T) *prometheus {
	t.Helper()
	db, err := tsdb.Open(t.TempDir(), promslog.NewNopLogger(), nil, tsdb.DefaultOptions(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return &prometheus{db: db, engine: promql.NewEngine(promql.EngineOpts{
		Logger: promslog.NewNopLogger(), MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: time.Minute,
	})}
}

// scrape stores the daemon's current metrics.
func (p *prometheus) scrape(ctx context.Context, d *daemon) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.http+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(reply.Body, 1<<24))
	if err != nil {
		return err
	}
	now := time.Now()
	vector, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.TimeFromUnixNano(now.UnixNano())}, all(families)...)
	if err != nil {
		return err
	}
	appender := p.db.Appender(ctx)
	for _, sample := range vector {
		series := labels.NewBuilder(labels.EmptyLabels())
		for name, value := range sample.Metric {
			series.Set(string(name), string(value))
		}
		series.Set("job", "pod-pacemaker").Set("instance", "n1")
		if _, err := appender.Append(0, series.Labels(), now.UnixMilli(), float64(sample.Value)); err != nil {
			return errors.Join(err, appender.Rollback())
		}
	}
	p.times = append(p.times, now)
	return appender.Commit()
}

func all(families map[string]*dto.MetricFamily) (list []*dto.MetricFamily) {
	for _, f := range families {
		list = append(list, f)
	}
	return list
}

// highest returns the highest value of the query over all scrapes. found is false if it never gave
// a value.
func (p *prometheus) highest(t *testing.T, query string) (highest float64, found bool) {
	t.Helper()
	highest = math.Inf(-1)
	for _, at := range p.times {
		q, err := p.engine.NewInstantQuery(t.Context(), p.db, nil, query, at)
		require.NoError(t, err, query)
		result := q.Exec(t.Context())
		require.NoError(t, result.Err, query)
		vector, err := result.Vector()
		require.NoError(t, err, query)
		for _, sample := range vector {
			if !math.IsNaN(sample.F) {
				highest, found = max(highest, sample.F), true
			}
		}
		q.Close()
	}
	return highest, found
}

// panelValues bounds the highest value of each panel, for 12 pods of one CPU-second, two refused pods
// and 5 pods in the mode Shadow, two at a time. Slots may be lent as well.
var panelValues = map[string][2]float64{
	"Nodes not connected":    {0, 1},
	"Waiting":                {3, 14},
	"Starting":               {2, 4},
	"Starting, and slots":    {0, 4},
	"Longest wait":           {0.5, 300},
	"Over the limit, 1 h":    {0, 0},
	"Time waited":            {0.05, 300},
	"Time to start":          {0.05, 120},
	"Signals of the node":    {0, 100},
	"Hooks in the gate":      {1, 14},
	"Refusals":               {0.01, 20},
	"CPU that refusals cost": {0.0001, 2},
	"Pods that count":        {1, 500},
	"Used of the limit":      {0.001, 1},
	"CPU time of starts":     {0, 8},
	"Took, by estimate":      {0.1, 10},
	"Handlers, 99 %":         {0.0001, 2},
	"Time held in handlers":  {0, 0.5},
	"Memory of the daemon":   {10 << 20, 256 << 20},
}

// In a real Prometheus that scrapes a real node's daemon, each query of the dashboard gives
// numbers, and most panels the right ones. Meanwhile herds start under policies, one of them in the
// mode Shadow.
func TestDashboardOfARealNode(t *testing.T) {
	access := asServiceAccount(t)
	grantClusterScope(t)
	d := startDaemonAs(t, access)
	p := newPrometheus(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	scraped := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			err = p.scrape(t.Context(), d)
			after(ctx, time.Second)
		}
		scraped <- err
	}()
	const limits = `throttleConfig: {maxConcurrent: {value: 2}, cpu: {maxLoad: "100"}, loadAvg: {maxLoad: "1000"}, pressure: {io: {full: "99"}}}`
	d.configure(t, "{priority: 1, "+limits+"}")
	d.enforce(t, "of-the-node", `{selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 2}, running: {pods: 500, requests: {cpu: "500"}}}}`)
	d.enforce(t, "of-the-cluster", `{scope: Cluster, selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 2}}}`)
	ns := namespace(t)
	deploy(t, ns, "paced", 12, herdPod(1))
	eventually(t, "both slots are taken", func() bool { return len(d.status(t).Starting) == 2 }) // otherwise the next pod is not refused
	// A rate shows only what happens after a scrape has found the series.
	refused := func() bool { return d.metric(t, "pod_pacemaker_refusals_total") > 0 }
	createJob(t, ns, "refused", herdPod(0.1, runOnce))
	eventually(t, "a pod is refused", refused)
	after(ctx, 2*time.Second)
	createJob(t, ns, "refused-too", herdPod(0.1, runOnce))
	eventually(t, "all pods are ready", func() bool {
		ready := 0
		for _, pod := range pods(t, ns) {
			if condition(pod, "Ready") {
				ready++
			}
		}
		return ready == 12
	})
	d.idle(t)
	d.configure(t, "{priority: 2, mode: Shadow, "+limits+"}")
	shadow := namespace(t)
	deploy(t, shadow, "shadow", 5, herdPod(0.5))
	eventually(t, "all pods are ready", func() bool { return allReady(t, shadow, 5) })
	d.idle(t)
	after(ctx, 3*time.Second) // two more scrapes
	cancel()
	require.NoError(t, <-scraped)

	text, err := os.ReadFile(repository("deploy", "dashboard", "pod-pacemaker.json"))
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	grafana := strings.NewReplacer("$__rate_interval", "20s", "$instance", "n1")
	// These conditions match nothing on a healthy node. Without them the query must give numbers.
	nothing := strings.NewReplacer("pod_pacemaker_slots_lent{instance=~\"n1\"} > 0", "pod_pacemaker_slots_lent", "pod_pacemaker_signal_blind{instance=~\"n1\"} > 0", "pod_pacemaker_signal_blind")
	asked, judged := 0, map[string]bool{}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			asked++
			query := nothing.Replace(grafana.Replace(target.Expr))
			value, found := p.highest(t, query)
			assert.True(t, found, "%s: no data for %s", panel.Title, query)
			if bounds, ok := panelValues[panel.Title]; ok && found {
				judged[panel.Title] = true
				assert.GreaterOrEqual(t, value, bounds[0], "%s: %s", panel.Title, query)
				assert.LessOrEqual(t, value, bounds[1], "%s: %s", panel.Title, query)
			}
		}
	}
	figure(t, "%d queries of the dashboard gave numbers over %d scrapes", asked, len(p.times))
	assert.Greater(t, asked, 30)
	assert.Len(t, judged, len(panelValues), "panels with known bounds: a title may have changed")
}
