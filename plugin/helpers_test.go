package plugin

import (
	"io"
	"strings"
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// message returns the runtime's messages for a sandbox and a container in it.
func message(p *testPod, a *attempt) (*api.PodSandbox, *api.Container) {
	return &api.PodSandbox{Id: p.sandbox.ID(), Uid: p.uid, Namespace: p.spec.Namespace, Name: p.spec.Name, Pid: 1 << 22},
		&api.Container{Id: a.ctr.ID(), PodSandboxId: p.sandbox.ID()}
}

// handlerOf returns what the runtime's calls reach.
func handlerOf(d *Daemon) handler {
	return handler{starts: d.starts, waiting: d.waiting, observer: d.observer, refuseLarge: d.options.RefuseLargeEnvironments}
}

// counted returns the value of a metric, summed over its labels. For a histogram, it returns the count.
func counted(t testing.TB, n *node, name string) float64 {
	t.Helper()
	families, err := n.d.metrics().Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		var sum float64
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
		return sum
	}
	return 0
}

// holding reports whether a handler has waited.
func (n *node) holding() bool { return counted(n.t, n, "pod_pacemaker_handler_hold_seconds_total") > 0 }

// logged returns a function that returns all that the daemon has logged since the call.
func (n *node) logged() func() string {
	hook := logtest.NewLocal(n.options.Log)
	return func() string {
		var all strings.Builder
		for _, e := range hook.AllEntries() {
			line, err := e.String()
			require.NoError(n.t, err)
			all.WriteString(line)
		}
		return all.String()
	}
}

// discard returns a logger that writes nothing.
func discard() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// containers gives a pod containers of these kinds.
func containers(kinds map[string]podwatch.Kind) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) {
		pod.Containers = map[string]podwatch.Container{}
		for name, kind := range kinds {
			pod.Containers[name] = podwatch.Container{Kind: kind}
		}
	}
}

// sidecarAndApp are the containers of a pod whose app runs beside a sidecar.
var sidecarAndApp = map[string]podwatch.Kind{"sidecar": podwatch.Sidecar, "app": podwatch.App}
