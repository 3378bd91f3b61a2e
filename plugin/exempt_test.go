package plugin

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const daemonSetsExempt = "spec: {throttleConfig: {maxConcurrent: {value: 1}}, exemptions: {daemonSets: {namespaces: [default]}}}"

func TestExemptPodsNeverWait(t *testing.T) {
	t.Parallel()
	n := newNode(t, "spec: {throttleConfig: {maxConcurrent: {value: 1}}, exemptions: {namespaces: [infra], daemonSets: {namespaces: ['*']}, criticalPods: {namespaces: [default]}, allowSkipAnnotation: true}}")
	n.occupy("holder")
	n.pod("waits").runs().waitsAtGate("app")

	static := n.strangePod("static-unknown")
	static.spec.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	daemon := n.strangePod("daemon-unknown")
	daemon.spec.Labels = map[string]string{"pod-template-generation": "1"}
	infra := n.strangePod("infra")
	infra.spec.Namespace = "infra"
	for _, p := range []*testPod{
		static, daemon, infra,
		n.pod("static", func(pod *podwatch.Pod) { pod.Static = true }),
		n.pod("critical", func(pod *podwatch.Pod) { pod.PriorityClassName = "system-node-critical" }),
		n.pod("daemon", func(pod *podwatch.Pod) { pod.DaemonSet = true }),
		n.pod("skips", func(pod *podwatch.Pod) { pod.SkipAnnotation = true }),
	} {
		p.runs().startsNow("app")
		assert.Equal(t, reasons.Exempt, n.view(p.uid).Reason, p.spec.Name)
		assert.False(t, n.view(p.uid).Slot, "%s: no slot is free", p.spec.Name)
	}
	waiting, starting := n.names()
	assert.Equal(t, []string{"waits"}, waiting)
	assert.Equal(t, []string{"holder"}, starting)
}
