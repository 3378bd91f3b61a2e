package starts

import (
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Bounds that hold all pods.
const (
	noneStarts = "{selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 0}}}"
	noneRuns   = "{selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 0}}}"
)

var ofT1 = map[string]string{"throttle": "t1"}

// newUnlimitedNode is newNode without a limit beside the policies.
func newUnlimitedNode(t *testing.T, change ...func(*Options)) *node {
	t.Helper()
	n := newNode(t, change...)
	n.configured(t, "spec: {}", throttle.Settings{})
	return n
}

// factsOf sets the facts that the watch extracts from a pod.
func factsOf(labels map[string]string, requests map[string]int64) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) { pod.Facts = &startpolicy.Facts{Labels: labels, Requests: requests} }
}

// cpu makes a pod one of t1 with a CPU request.
func cpu(milli int64) func(*podwatch.Pod) { return factsOf(ofT1, map[string]int64{"cpu": milli}) }

// usage returns the usage of the only group.
func (n *node) usage() throttle.GroupView {
	n.t.Helper()
	groups := n.ledger.limiter.Groups(time.Now())
	require.LessOrEqual(n.t, len(groups), 1)
	if len(groups) == 0 {
		return throttle.GroupView{}
	}
	return groups[0]
}

// isHeld asserts that a policy refuses the pod's sandbox.
func (p *testPod) isHeld(reason reasons.Reason, why ...string) {
	p.n.t.Helper()
	d := p.run()
	assert.False(p.n.t, d.Granted, p.uid)
	assert.Equal(p.n.t, "t1", d.Held.Policy.Policy)
	p.is(throttle.Waiting, reason, why...)
}

// A pod that a policy holds is refused, and a pod that the policy does not select starts. When the policy is edited, or
// the running pod is gone, the held pod starts.
func TestAPodHeldByARunningBoundIsRefused(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		n.enforce(t, t1)
		first, second, third := n.pod("pod1", cpu(200)).hasStarted("app"), n.pod("pod2", cpu(100)), n.pod("pod3", cpu(100))
		assert.Equal(t, 1, n.usage().Ready)
		second.isHeld(reasons.PolicyRunning)
		n.pod("memory", factsOf(ofT1, map[string]int64{"memory": 1000})).runs().starts("app")
		n.pod("other", factsOf(nil, map[string]int64{"cpu": 900})).runs().starts("app")

		n.enforce(t, "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {requests: {cpu: 350m}}}}")
		second.runs().starts("app")
		v := n.usage()
		assert.EqualValues(t, 3, v.Running.Pods)
		assert.EqualValues(t, 300, v.Running.Requests["cpu"])

		third.isHeld(reasons.PolicyRunning)
		first.reports(inPhase(corev1.PodSucceeded))
		assert.EqualValues(t, 100, n.usage().Running.Requests["cpu"])
		third.runs().starts("app")
	})
}

// Nothing is left of a pod once it has ended and its sandbox is gone, whichever the daemon learns first. The pod watch does
// not report the deletion of every such pod.
func TestAPodThatHasEndedIsForgotten(t *testing.T) {
	t.Parallel()
	for name, reversed := range map[string]bool{"ended first": false, "removed first": true, "never ran": true} {
		onUnlimitedNode(t, func(t *testing.T, n *node) {
			n.enforce(t, t1)
			p := n.pod("pod1", cpu(200))
			if name != "never ran" {
				p.runs().starts("app")
			}
			ends := func() {
				p.reports(inPhase(corev1.PodFailed))
				delete(n.watch.pods, p.uid)
			}
			if !reversed {
				ends()
			}
			if name != "never ran" {
				p.exits("app")
				n.SandboxStopped(p.sandbox)
				n.ContainerRemoved(p.sandbox, p.latest["app"])
				n.SandboxRemoved(p.sandbox)
			}
			if reversed {
				ends()
			}
			assert.Empty(t, n.ledger.pods, name)
		})
	}
}

// The pod watch may forget the pod after it was asked, and before its last container is removed.
func TestAPodThatEndsWhileItsLastContainerIsRemovedIsForgotten(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		p := n.pod("pod1").runs()
		p.starts("app")
		p.exits("app")
		n.SandboxStopped(p.sandbox)
		ended := n.watch.pods[p.uid]
		ended.Phase = corev1.PodFailed
		n.watch.get = func(string) {
			n.watch.get = nil
			n.PodChanged(time.Now(), ended, false)
		}
		n.ContainerRemoved(p.sandbox, p.latest["app"])
		assert.Empty(t, n.ledger.pods)
	})
}

// The watch of namespaces runs it in a goroutine that nothing guards: one policy must not end the daemons of all nodes.
func TestAPolicyThatFailsForNamespacesEndsNothing(t *testing.T) {
	t.Parallel()
	log, logs := logtest.NewNullLogger()
	s := aStarts(func(o *Options) {
		o.Log = log
		o.PoliciesChanged = func(policies.Changes) { panic("a policy") }
	})
	require.NotPanics(t, func() { s.SetNamespaces(time.Now(), map[string]map[string]string{"shop": {"team": "a"}}) })
	require.Contains(t, logs.LastEntry().Message, "caught a panic in SetNamespaces")
}
