package observe

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// anObserver returns an Observer and the registry of all metrics. measure returns the signals of the node.
func anObserver(l *throttle.Limiter, measure func() throttle.Signals) (*Observer, *prometheus.Registry) {
	return observing(l, func() (s admin.Status) {
		s.Signals = admin.NewSignals(measure(), l.Snapshot(time.Now()).Settings)
		return s
	})
}

// observing returns an Observer and the registry of all metrics, of a daemon with this status.
func observing(l *throttle.Limiter, status func() admin.Status) (*Observer, *prometheus.Registry) {
	o := New(Options{Log: discard(), Events: &Recorder{}, Nodes: func() int { return 1 }})
	var mu sync.Mutex // guards the limiter: the registry asks for all metrics at once
	groups := func(now time.Time) []throttle.GroupView {
		mu.Lock()
		defer mu.Unlock()
		return l.Groups(now)
	}
	state := func() admin.Status {
		mu.Lock()
		defer mu.Unlock()
		return status()
	}
	registry := o.WithScraped(Scraped{
		Groups: groups, Status: state, Policies: func() []policies.State { return nil }, Claims: func() leases.View { return leases.View{} },
		Standby: func() bool { return false }, Delay: func() string { return "" },
	})
	return o, registry
}

// The alerts on these would speak of a daemon that paces no pods, and whose place another one has.
func TestADaemonThatStandsByHasNoMetricOfItsConnections(t *testing.T) {
	t.Parallel()
	for standby, want := range map[bool]int{false: 2, true: 0} {
		o := New(Options{Log: discard(), Events: &Recorder{}, Nodes: func() int { return 1 }})
		n, err := testutil.GatherAndCount(o.WithScraped(Scraped{
			Groups:   throttle.New(time.Now(), throttle.Settings{}).Groups,
			Status:   func() (s admin.Status) { s.PodWatch = &admin.PodWatch{Healthy: true}; return s },
			Policies: func() []policies.State { return nil }, Claims: func() leases.View { return leases.View{} },
			Standby: func() bool { return standby }, Delay: func() string { return "" },
		}), "pod_pacemaker_connected", "pod_pacemaker_api_connected")
		require.NoError(t, err)
		assert.Equal(t, want, n)
	}
}

func TestOnlyTheConfigurationInForceIsAMetric(t *testing.T) {
	t.Parallel()
	o, registry := anObserver(throttle.New(time.Now(), throttle.Settings{}), func() throttle.Signals { return throttle.Signals{} })
	o.Report(Configured{Name: "before", Origin: "API", Generation: 7})
	o.Report(Configured{Name: "test", Origin: "File", Generation: 3})
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pod_pacemaker_config_generation Generation of the PacemakerConfig in force.
# TYPE pod_pacemaker_config_generation gauge
pod_pacemaker_config_generation{config="test",origin="File"} 3
`), "pod_pacemaker_config_generation"))
}

// Equal samples fail a scrape, and with it all metrics of the daemon. Two selectors may be written differently and have one
// text.
func TestAnEntryOfStartAfterThatIsThereTwiceFailsNoScrape(t *testing.T) {
	t.Parallel()
	_, registry := observing(throttle.New(time.Now(), throttle.Settings{}), func() (s admin.Status) {
		for _, state := range []AfterState{AfterTimedOut, AfterWaiting, AfterWaiting} {
			s.StartAfter = append(s.StartAfter, admin.StartAfter{For: "kube-system/cilium", State: string(state)})
		}
		return s
	})
	n, err := testutil.GatherAndCount(registry, "pod_pacemaker_start_after")
	require.NoError(t, err)
	assert.Equal(t, 2, n)
}

// increase() sees no increase where a series begins, so these begin with the daemon.
func TestAlertsSeeTheFirstEvent(t *testing.T) {
	t.Parallel()
	_, registry := anObserver(throttle.New(time.Now(), throttle.Settings{}), func() throttle.Signals { return throttle.Signals{} })
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pod_pacemaker_admissions_total Admitted starts. MaxWait: over the limit. SlotLent: into a lent slot. Adopted: under way when the daemon learned of it. LastResort: the limiter admitted nothing for too long. ByHand: pod-pacemaker admit.
# TYPE pod_pacemaker_admissions_total counter
pod_pacemaker_admissions_total{reason="LastResort"} 0
pod_pacemaker_admissions_total{reason="MaxWait"} 0
# HELP pod_pacemaker_unpaced_total Starts that were not paced. Adopted: under way when the daemon synchronized, whether or not an earlier daemon paced them. Shadow and Disabled: the mode asks for that.
# TYPE pod_pacemaker_unpaced_total counter
pod_pacemaker_unpaced_total{reason="NotAsked"} 0
pod_pacemaker_unpaced_total{reason="Panic"} 0
`), "pod_pacemaker_admissions_total", "pod_pacemaker_unpaced_total"))
	n, err := testutil.GatherAndCount(registry, "pod_pacemaker_start_seconds")
	require.NoError(t, err)
	require.Equal(t, 1, n, "of the reason Stuck")
}

func TestSignalsThatNoLimitNeedsAreMetrics(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := throttle.New(now, throttle.Settings{})
	var settings throttle.Settings
	settings.Signals[throttle.SignalLoad].Max = 4
	settings.Signals[throttle.SignalIOFull].Max = 20
	l.Configure(now, settings)
	_, registry := anObserver(l, func() (s throttle.Signals) {
		for i := range s {
			s[i].Err = errors.New("absent")
		}
		s[throttle.SignalLoad] = throttle.Reading{Value: 7.25, To: now}
		s[throttle.SignalCPU] = throttle.Reading{Value: 50, To: now}
		s[throttle.SignalIOWait] = throttle.Reading{} // it was measured once
		return s
	})
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pod_pacemaker_signal_blind 1 while a signal cannot be measured: its limit holds no start then, and adaptive works without it.
# TYPE pod_pacemaker_signal_blind gauge
pod_pacemaker_signal_blind{signal="cpu"} 0
pod_pacemaker_signal_blind{signal="iowait"} 0
pod_pacemaker_signal_blind{signal="load"} 0
pod_pacemaker_signal_blind{signal="pressure.cpu.some"} 1
pod_pacemaker_signal_blind{signal="pressure.io.full"} 1
pod_pacemaker_signal_blind{signal="pressure.io.some"} 1
pod_pacemaker_signal_blind{signal="pressure.memory.full"} 1
pod_pacemaker_signal_blind{signal="pressure.memory.some"} 1
# HELP pod_pacemaker_signal_threshold The value from which a signal holds starts. Absent where no limit is set.
# TYPE pod_pacemaker_signal_threshold gauge
pod_pacemaker_signal_threshold{signal="load"} 4
pod_pacemaker_signal_threshold{signal="pressure.io.full"} 20
# HELP pod_pacemaker_signal_value Value of a signal, in percent; load in processes. Absent while it cannot be measured.
# TYPE pod_pacemaker_signal_value gauge
pod_pacemaker_signal_value{signal="cpu"} 50
pod_pacemaker_signal_value{signal="load"} 7.25
`), "pod_pacemaker_signal_blind", "pod_pacemaker_signal_threshold", "pod_pacemaker_signal_value"))
}

func TestWhetherTheAPIServerIsReachedIsAMetric(t *testing.T) {
	t.Parallel()
	var status admin.Status
	_, registry := observing(throttle.New(time.Now(), throttle.Settings{}), func() admin.Status { return status })
	values := func() (values []float64) {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, family := range families {
			if family.GetName() == "pod_pacemaker_api_connected" {
				for _, metric := range family.GetMetric() {
					values = append(values, metric.GetGauge().GetValue())
				}
			}
		}
		return values
	}
	assert.Empty(t, values(), "a standalone daemon needs no API server")
	status.PodWatch = &admin.PodWatch{}
	assert.Equal(t, []float64{0}, values())
	status.PodWatch.Healthy = true
	assert.Equal(t, []float64{1}, values())
	status.Unread = []admin.Unread{{What: "PacemakerConfigs"}}
	assert.Equal(t, []float64{0}, values(), "not even the mode Disabled reaches the daemon")
}

func TestAMetricThatPanicsLeavesTheOthers(t *testing.T) {
	t.Parallel()
	o, registry := anObserver(throttle.New(time.Now(), throttle.Settings{}), func() throttle.Signals { panic("broken") })
	_, err := registry.Gather()
	require.NoError(t, err)
	assert.InDelta(t, 1, testutil.ToFloat64(o.metrics.panics.WithLabelValues("metrics")), 0)
}
