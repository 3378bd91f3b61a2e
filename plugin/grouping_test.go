package plugin

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// enforce puts policies in force, each written as NAME and spec.
func (n *node) enforce(specs map[string]string) {
	n.t.Helper()
	text := "# policies\n"
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		text += "---\napiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: " + name + "}\nspec: " + specs[name] + "\n"
	}
	if len(specs) == 0 {
		n.d.setPolicies(nil)
		return
	}
	found, err := crd.Parse([]byte(text))
	require.NoError(n.t, err)
	n.d.setPolicies(found.Policies)
}

// factsOf sets the facts that the watch extracts from a pod.
func factsOf(labels map[string]string, requests map[string]int64) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) {
		pod.Facts = &startpolicy.Facts{Labels: labels, Requests: requests}
	}
}

// usage returns the usage of a policy's only group.
func (n *node) usage(policy string) throttle.GroupView {
	for _, v := range n.d.limiter.Groups(time.Now()) {
		if v.Key.Policy == policy {
			return v
		}
	}
	return throttle.GroupView{}
}

const t1 = "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {requests: {cpu: 200m}}}}"

var ofT1 = map[string]string{"throttle": "t1"}

// A pod that a policy holds is refused, and a pod that the policy does not select starts. When the policy is edited, or the
// running pod is gone, the held pod starts.
func TestAPodHeldByARunningBoundIsRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit)
	n.enforce(map[string]string{"t1": t1})
	first := n.pod("pod1", factsOf(ofT1, map[string]int64{"cpu": 200})).runs()
	first.startsNow("app")
	first.getsReady()
	n.eventually("the pod counts as ready", func() bool { return n.usage("t1").Ready == 1 })

	second := n.pod("pod2", factsOf(ofT1, map[string]int64{"cpu": 100}))
	require.ErrorContains(t, second.run(), "policy t1")
	second.becomes(throttle.Waiting, reasons.PolicyRunning)
	n.pod("memory", factsOf(ofT1, map[string]int64{"memory": 1000})).runs().startsNow("app")
	n.pod("other", factsOf(nil, map[string]int64{"cpu": 900})).runs().startsNow("app")

	n.enforce(map[string]string{"t1": "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {requests: {cpu: 350m}}}}"})
	second.runs().startsNow("app")
	v := n.usage("t1")
	assert.EqualValues(t, 3, v.Running.Pods)
	assert.EqualValues(t, 300, v.Running.Requests["cpu"])

	third := n.pod("pod3", factsOf(ofT1, map[string]int64{"cpu": 100}))
	require.Error(t, third.run())
	require.NoError(t, first.sandbox.Stop(n.ctx))
	n.eventually("the end of a sandbox makes room", func() bool { return n.usage("t1").Running.Requests["cpu"] == 100 })
	third.runs().startsNow("app")
}

// Pods that run when the daemon starts count, even if the daemon did not admit them.
func TestPodsThatRunAreCountedByTheNextDaemon(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit)
	n.pod("pod1", factsOf(ofT1, map[string]int64{"cpu": 200})).runs().startsNow("app")
	n.stopDaemon()
	n.startDaemon()
	n.enforce(map[string]string{"t1": t1})
	n.connected()
	n.eventually("the pod is counted", func() bool { return n.usage("t1").Running.Pods == 1 })
	require.ErrorContains(t, n.pod("pod2", factsOf(ofT1, map[string]int64{"cpu": 10})).run(), "policy t1")
}

func TestAPodThatSucceededDoesNotCount(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit)
	n.enforce(map[string]string{"t1": t1})
	p := n.pod("pod1", factsOf(ofT1, map[string]int64{"cpu": 200})).runs()
	p.startsNow("app")
	require.EqualValues(t, 1, n.usage("t1").Running.Pods)
	p.reports(func(pod *podwatch.Pod) { pod.Phase = corev1.PodSucceeded })
	n.eventually("the pod has finished", func() bool { return n.usage("t1").Running.Pods == 0 })
}

// Deleting a policy admits the pods that it holds.
func TestADeletedPolicyHoldsNoPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit)
	n.enforce(map[string]string{"none": "{selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 0}}}"})
	p := n.pod("p", factsOf(nil, nil))
	if p.run() == nil {
		a := p.starts("app")
		p.becomes(throttle.Waiting, reasons.PolicyStarting)
		n.enforce(nil)
		a.succeeds()
		return
	}
	p.becomes(throttle.Waiting, reasons.PolicyStarting)
	n.enforce(nil)
	p.runs().startsNow("app")
}

// In the mode Off, policies hold no pod either.
func TestTheModeOffSuspendsPolicies(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit)
	n.enforce(map[string]string{"none": "{selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 0}}}"})
	p := n.pod("p", factsOf(nil, nil))
	require.Error(t, p.run())
	n.reconfigure(`spec: {mode: "Off"}`)
	p.runs().startsNow("app")
}

// Without a pod watch, the labels of a pod and its CPU come from the runtime.
func TestStandaloneKnowsLabelsAndCPU(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit, standalone)
	n.enforce(map[string]string{"t1": t1})
	first := n.strangePod("pod1")
	first.spec.Labels = ofT1
	first.runs().startsNow("app")
	n.eventually("it counts", func() bool { return n.usage("t1").Running.Pods == 1 })
}

// A pod that crashed is not ready until it is ready again, however long kubelet waits before it restarts the pod. Until
// then, pacing admits no other pod.
func TestAPodThatCrashedIsNotReadyForThePacer(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit)
	n.enforce(map[string]string{"waves": "{selector: {terms: [{podSelector: {}}]}, limits: {pacer: {exponential: {minInitial: 1, multiplier: 4, maxStagger: 10}}}}"})
	first := n.pod("first", factsOf(nil, nil)).runs()
	first.startsNow("app")
	first.getsReady()
	n.eventually("the pod counts as ready", func() bool { return n.usage("waves").Ready == 1 })
	first.crash("app")
	first.reports(func(pod *podwatch.Pod) { pod.ContainersReady, pod.AllRunning, pod.CrashLooping = false, false, true })
	n.eventually("the pod is no longer ready", func() bool { return n.usage("waves").Ready == 0 })
	require.EqualValues(t, 1, n.usage("waves").Running.Pods, "the pod has not finished")

	first.startsNow("app")
	first.getsReady()
	n.eventually("the pod is ready again", func() bool { return n.usage("waves").Ready == 1 })
}

// The runtime reports the end of a sandbox before the end of its containers, and the pod watch may report the pod in
// between. Nothing of the pod runs then.
func TestAPodWhoseSandboxWasStoppedDoesNotRunAnyMore(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit)
	n.enforce(map[string]string{"t1": t1})
	first := n.pod("pod1", factsOf(ofT1, map[string]int64{"cpu": 200})).runs()
	first.startsNow("app")
	first.getsReady()
	n.eventually("the pod counts as ready", func() bool { return n.usage("t1").Ready == 1 })
	require.NoError(t, n.d.handler.StopPodSandbox(n.ctx, &api.PodSandbox{Id: first.sandbox.ID(), Uid: first.uid, Namespace: first.spec.Namespace, Name: first.spec.Name}))
	require.Zero(t, n.usage("t1").Running.Pods)
	first.reports()
	require.Zero(t, n.usage("t1").Running.Pods, "the watch reports an earlier state")
	n.pod("pod2", factsOf(ofT1, map[string]int64{"cpu": 200})).runs().startsNow("app")

	require.ErrorContains(t, first.run(), "policy t1", "it starts again, and another pod has its place")
}

// regrouped is a limiter that records which pods got new groups.
type regrouped struct {
	*throttle.Limiter

	mu   sync.Mutex
	pods []string
}

func (l *regrouped) SetPolicies(now time.Time, limits map[string]throttle.GroupLimits, pods ...throttle.PodGroups) {
	l.mu.Lock()
	for _, pod := range pods {
		l.pods = append(l.pods, pod.UID)
	}
	l.mu.Unlock()
	l.Limiter.SetPolicies(now, limits, pods...)
}

func (l *regrouped) took() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	pods := l.pods
	l.pods = nil
	return pods
}

// The API server has only a mirror of a static pod, which may be deleted before the sandbox ends, or long after.
func TestAStaticPodIsForgottenWithItsLastPart(t *testing.T) {
	t.Parallel()
	var told *regrouped
	n := newNode(t, noLimit, tuned(func(r *tuning) {
		r.matcher = func(l *throttle.Limiter) *policies.Matcher {
			told = &regrouped{Limiter: l}
			return policies.New(told, false)
		}
	}))
	static := func(pod *podwatch.Pod) { pod.Static = true }
	for name, mirrorFirst := range map[string]bool{"early": true, "late": false} {
		p := n.strangePod(name)
		p.spec.Labels = ofT1
		p.becomesKnown(static, factsOf(ofT1, nil))
		p.runs().startsNow("app")
		n.enforce(map[string]string{"t1": t1})
		require.Equal(t, []string{p.uid}, told.took(), name)
		n.enforce(nil)
		require.Equal(t, []string{p.uid}, told.took(), name)
		if mirrorFirst {
			n.pods.remove(p.uid)
			n.enforce(map[string]string{"t1": t1})
			require.Equal(t, []string{p.uid}, told.took(), "the pod still runs")
			n.enforce(nil)
			told.took()
		}
		require.NoError(t, p.sandbox.Remove(n.ctx))
		n.eventually("the runtime has reported the end of the pod", func() bool { return n.records() == 0 })
		if !mirrorFirst {
			n.pods.remove(p.uid)
		}
		n.enforce(map[string]string{"t1": t1})
		require.Empty(t, told.took(), name)
		n.enforce(nil)
	}
}
