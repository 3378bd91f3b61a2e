package starts

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A pod that crashed is not ready until it is ready again, however long kubelet waits before it restarts the pod.
// Until then, pacing admits no other pod.
func TestAPodThatCrashedIsNotReadyForThePacer(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		n.enforce(t, "{selector: {terms: [{podSelector: {}}]}, limits: {pacer: {exponential: {minInitial: 1, multiplier: 4, maxStagger: 10}}}}")
		p := n.pod("first", factsOf(nil, nil)).hasStarted("app")
		require.Equal(t, 1, n.usage().Ready)
		p.exits("app")
		p.reports(func(pod *podwatch.Pod) { pod.ContainersReady, pod.AllRunning, pod.CrashLooping = false, false, true })
		assert.Zero(t, n.usage().Ready)
		assert.EqualValues(t, 1, n.usage().Running.Pods, "the pod has not finished")
		p.starts("app")
		p.reports()
		assert.Zero(t, n.usage().Ready)
		p.getsReady()
		assert.Equal(t, 1, n.usage().Ready)

		p.exits("app")
		p.starts("app")
		assert.Zero(t, n.usage().Ready, "the kubelet has not reported since")
	})
}

// The API server may have a report from before the node was rebooted.
func TestAReportOfAnEarlierContainerMakesNoPodReady(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		n.enforce(t, t1)
		p := n.pod("pod1", cpu(100))
		p.running["app"] = "from-before"
		p.getsReady()
		p.sandbox.Id, p.sandbox.Pid = "s", 7
		ctr := p.isMade("app")
		ctr.State, ctr.StartedAt = api.ContainerState_CONTAINER_RUNNING, time.Now().Add(-time.Hour).UnixNano()
		n.Synchronize([]*api.PodSandbox{p.sandbox}, []*api.Container{ctr})
		assert.EqualValues(t, 1, n.usage().Running.Pods)
		assert.Zero(t, n.usage().Ready)
		p.running["app"] = ctr.GetId()
		p.getsReady()
		assert.Equal(t, 1, n.usage().Ready)
	})
}

// A pod that gets another sandbox has not finished.
func TestAPodRunsWhileItsSandboxIsMadeAnew(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		n.enforce(t, t1)
		first := n.pod("pod1", cpu(200)).hasStarted("app")
		first.exits("app")
		n.SandboxStopped(first.sandbox)
		require.EqualValues(t, 1, n.usage().Running.Pods)
		require.Zero(t, n.usage().Ready)
		first.reports(func(pod *podwatch.Pod) { pod.ContainersReady, pod.AllRunning = false, false })
		n.SandboxRemoved(first.sandbox)
		require.EqualValues(t, 1, n.usage().Running.Pods)
		n.pod("pod2", cpu(200)).isHeld(reasons.PolicyRunning)
		first.runs().starts("app")
		first.getsReady()
		assert.EqualValues(t, 1, n.usage().Running.Pods)
		assert.Equal(t, 1, n.usage().Ready)
	})
}

// The runtime reports the end of a sandbox before the end of its containers, and the pod watch may report the pod in
// between. A pod that gets no other sandbox has finished then.
func TestAPodThatGetsNoOtherSandboxHasFinishedWithItsSandbox(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*podwatch.Pod){
		"never restarted": func(pod *podwatch.Pod) { pod.RestartPolicy = "Never" },
		"deleted":         func(pod *podwatch.Pod) { pod.Deleting = true },
	} {
		onUnlimitedNode(t, func(t *testing.T, n *node) {
			n.enforce(t, t1)
			first := n.pod("pod1", cpu(200)).hasStarted("app")
			first.reports(change)
			require.EqualValues(t, 1, n.usage().Running.Pods, name)
			n.SandboxStopped(first.sandbox)
			require.Zero(t, n.usage().Running.Pods, name)
			first.reports()
			require.Zero(t, n.usage().Running.Pods, "%s: the watch reports an earlier state", name)
			n.pod("pod2", cpu(200)).runs().starts("app")
		})
	}
}

// In the mode Shadow, a policy sees what it would see in the mode Enforce.
func TestAStartThatContinuedAtOnceCountsWhenItsTurnHasCome(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, shadowMode, oneSlot)
		n.enforce(t, "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {pods: 5}}}")
		holder, p := n.occupies("holder"), n.pod("p", cpu(100)).runs()
		p.starts("app")
		p.reports()
		assert.Zero(t, n.usage().Running.Pods)
		holder.getsReady()
		p.reports()
		assert.EqualValues(t, 1, n.usage().Running.Pods)
	})
}

// Without a report of the pod watch, the labels of a pod and its CPU request come from the runtime.
func TestTheRuntimeKnowsLabelsAndCPU(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		n.enforce(t, t1)
		first, second := n.stranger("pod1"), n.stranger("pod2")
		for _, p := range []*testPod{first, second} {
			p.sandbox.Labels = ofT1
			p.sandbox.Linux = &api.LinuxPodSandbox{PodResources: &api.LinuxResources{Cpu: &api.LinuxCPU{Shares: api.UInt64(154)}}}
		}
		first.runs().starts("app")
		assert.EqualValues(t, 151, n.usage().Running.Requests["cpu"])
		second.isHeld(reasons.PolicyRunning)
	}, standalone)
}

// While the API server was away, the pod seemed to have started.
func TestAPodThatOnlySeemedReadyIsNotReadyForThePacer(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		b := &burner{n: n, root: root}
		n.enforce(t, "{selector: {terms: [{podSelector: {}}]}, limits: {pacer: {linear: {step: 1, maxStagger: 10}}}}")
		p := n.pod("first", factsOf(nil, nil)).runs()
		p.starts("app")
		n.watch.away = true
		b.idles(60)
		p.is(throttle.Started, reasons.Inferred)
		require.Equal(t, 1, n.usage().Ready)
		n.watch.away = false
		p.reports(func(pod *podwatch.Pod) { pod.ContainersReady, pod.AllRunning = false, false })
		assert.Zero(t, n.usage().Ready)
		assert.Equal(t, reasons.PolicyPacer, n.pod("second", factsOf(nil, nil)).run().Reason)
	}, withProc(root))
}

// Without an API server nothing reports that a pod is ready. The runtime lists the pods again, to this daemon or another.
func TestAPodThatTheWatchDoesNotKnowStaysReadyForThePacer(t *testing.T) {
	t.Parallel()
	const paced = "{selector: {terms: [{podSelector: {}}]}, limits: {pacer: {linear: {step: 1, maxStagger: 10}}}}"
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		n.enforce(t, paced)
		p := n.stranger("first").runs()
		p.starts("app")
		ctr := p.latest["app"]
		ctr.State, ctr.StartedAt = api.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
		n.lists([]*testPod{p}, ctr)
		require.Zero(t, n.usage().Ready, "it starts")
		n.passes(time.Minute)
		p.is(throttle.Started, reasons.Inferred)
		n.lists([]*testPod{p}, ctr)
		assert.Equal(t, 1, n.usage().Ready)
		n.stranger("second").runs().starts("app")

		n.passes(time.Hour)
		another := newUnlimitedNode(t, standalone)
		another.enforce(t, paced)
		another.lists([]*testPod{p}, ctr)
		assert.Equal(t, 1, another.usage().Ready)
		another.stranger("third").runs().starts("app")
	}, standalone)
}
