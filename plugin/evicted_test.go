package plugin

import (
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/evictions"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// knownEvictions plays the watch of evictions: it knows what a test tells it.
type knownEvictions struct {
	mu      sync.Mutex
	down    map[evictions.Pod]evictions.Cause
	waiting map[string]int // by namespace
}

func (k *knownEvictions) Enter(namespace string) { k.add(namespace, 1) }

func (k *knownEvictions) Leave(namespace string) { k.add(namespace, -1) }

func (k *knownEvictions) add(namespace string, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting[namespace] += n
}

func (k *knownEvictions) TakenDown(pod evictions.Pod) (cause evictions.Cause, is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	cause, is = k.down[pod]
	return cause, is
}

// waitIn gives how many wait in a namespace.
func (k *knownEvictions) waitIn(namespace string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waiting[namespace]
}

// withEvictions gives what the daemon knows of evictions, and has it ask there.
func withEvictions() (*knownEvictions, nodeOption) {
	k := &knownEvictions{down: map[evictions.Pod]evictions.Cause{}, waiting: map[string]int{}}
	return k, tuned(func(p *pacer) { p.evictions = k })
}

// evicted is the pod as the watch of evictions names it.
func (p *testPod) evicted() evictions.Pod {
	return evictions.Pod{Namespace: p.spec.Namespace, Name: p.spec.Name, UID: p.uid}
}

// manyContainers has a pod with several.
func manyContainers(pod *podwatch.Pod) {
	pod.Containers = containersNamed(podwatch.App, "app", "second", "third")
}

// kubelet's worker for the pod sees the eviction only when the start of the container that
// waits is over; before it looks, it goes on with the others. It is the same when kubelet
// preempts the pod.
func TestAPodThatKubeletTakesDownLeavesTheGateAndNothingOfItStarts(t *testing.T) {
	t.Parallel()
	for cause, want := range map[evictions.Cause]struct {
		reason      throttle.Reason
		hears, logs string
	}{
		evictions.Eviction: {
			throttle.Evicted, "Evicted: kubelet evicts the pod, which waited for its turn to start", "kubelet evicts the pod",
		},
		evictions.Preemption: {
			throttle.Preempted, "Preempted: kubelet preempts the pod, which waited for its turn to start", "kubelet preempts the pod",
		},
	} {
		t.Run(string(cause), func(t *testing.T) {
			t.Parallel()
			n := newNode(t, oneAtATime)
			logged := n.logged()
			holder := n.occupy("holder")
			p := n.pod("victim", manyContainers).runs()
			a := p.waitsAtGate("app")
			made := p.creates("second")

			n.p.podTakenDown(p.evicted(), cause)
			require.ErrorContains(t, a.result(), want.hears)
			require.ErrorContains(t, p.launches("second", made).result(), string(want.reason), "its hook comes now")
			_, err := p.create("third")
			require.ErrorContains(t, err, "pod-pacemaker: not started: "+string(want.reason)+" (kubelet ends the pod)")
			n.noHookIsLeft()
			p.becomes(throttle.Gone, want.reason)
			n.eventually("the log says so", func() bool {
				line := want.logs + `: it waits no longer.* pod_name=victim .*reason=` + string(want.reason)
				return regexp.MustCompile(line).MatchString(logged())
			})

			waits := n.pod("waits").runs().waitsAtGate("app")
			holder.getsReady()
			waits.succeeds()
			assert.Equal(t, throttle.Gone, p.is(), "it has no place any more")
		})
	}
}

// An event is believed of who waits, by all of its names.
func TestAnEvictionOfWhoDoesNotWaitChangesNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	p := n.pod("waits").runs()
	a := p.waitsAtGate("app")
	n.p.podTakenDown(holder.evicted(), evictions.Eviction)
	n.p.podTakenDown(evictions.Pod{Namespace: "default", Name: "stranger", UID: "stranger"}, evictions.Eviction)
	n.p.podTakenDown(evictions.Pod{Namespace: "other", Name: "waits", UID: p.uid}, evictions.Eviction)
	n.p.podTakenDown(evictions.Pod{Namespace: "default", Name: "other", UID: p.uid}, evictions.Eviction)
	assert.Equal(t, throttle.Starting, holder.is())
	assert.Equal(t, throttle.Waiting, p.is())
	assert.False(t, a.over())
	holder.getsReady()
	a.succeeds()
}

// kubelet can begin to evict a pod before its container is made.
func TestAPodThatIsEvictedBeforeItComesToTheGateDoesNotStayThere(t *testing.T) {
	t.Parallel()
	known, asked := withEvictions()
	n := newNode(t, oneAtATime, asked)
	n.occupy("holder")
	p := n.pod("evicted").runs()
	known.mu.Lock()
	known.down[p.evicted()] = evictions.Eviction
	known.mu.Unlock()
	require.ErrorContains(t, p.starts("app").result(), string(throttle.Evicted))
	p.becomes(throttle.Gone, throttle.Evicted)
	n.eventually("nobody waits there", func() bool { return known.waitIn("default") == 0 })
}

func TestTheWatchOfEvictionsIsToldWhereWhoWaitsIs(t *testing.T) {
	t.Parallel()
	known, asked := withEvictions()
	n := newNode(t, oneAtATime, asked)
	holder := n.occupy("holder")
	a, b := n.pod("first").runs().waitsAtGate("app"), n.pod("second").runs().waitsAtGate("app")
	assert.Equal(t, 2, known.waitIn("default"))
	holder.getsReady()
	a.succeeds()
	n.eventually("one waits still", func() bool { return known.waitIn("default") == 1 })
	assert.False(t, b.over())
}

// A kubelet that was restarted before it wrote the end of the pod starts it again.
func TestAnEvictedPodThatComesBackMuchLaterWaitsAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	p := n.pod("evicted").runs()
	a := p.waitsAtGate("app")
	n.p.podTakenDown(p.evicted(), evictions.Eviction)
	require.Error(t, a.result())
	ticket := n.p.limiter.Lookup(p.uid)
	ended := n.view(p.uid).Ended
	assert.True(t, n.p.isTakenDown(ended.Add(evictions.Believed-1), ticket))
	assert.False(t, n.p.isTakenDown(ended.Add(evictions.Believed), ticket))
	n.p.mu.Lock()
	begins := n.p.beginsLocked(ended.Add(evictions.Believed), n.p.records[p.uid], "app", podwatch.Pod{}, false)
	n.p.mu.Unlock()
	assert.Equal(t, startBegins, begins)
}

// In the modes in which nobody waits, nobody is refused, and what went on is not ended.
func TestAnEvictionWhereNobodyWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneInShadow)
	n.occupy("holder")
	p := n.pod("second").runs()
	p.startsNow("app")
	n.p.podTakenDown(p.evicted(), evictions.Eviction)
	assert.Equal(t, throttle.Waiting, p.is())
	n.reconfigure(oneAtATime)
	p = n.pod("evicted", manyContainers).runs()
	a := p.waitsAtGate("app")
	n.p.podTakenDown(p.evicted(), evictions.Eviction)
	require.Error(t, a.result())
	n.reconfigure(oneInShadow)
	p.startsNow("second")
}

// victimAtGate gives a cluster whose daemon may watch events, and the start of a pod that
// waits at the gate there. kubelet has written an event on the pod, for which nobody looks yet.
func victimAtGate(t *testing.T, cause evictions.Cause) (*cluster, *attempt) {
	t.Helper()
	c := unstartedClusterWith(t, []nodeOption{with(func(o *Options) { o.WatchEvictions, o.Gate = true, GateAlways })})
	c.starts()
	c.isWatched()
	c.eventually("the configuration is in force", func() bool { return c.d.Status().Config.Generation == 1 })
	c.strangePod("holder").runs().startsNow("app")
	p := c.strangePod("victim").runs()
	a := p.waitsAtGate("app")
	_, err := c.kube.CoreV1().Events("default").Create(c.ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "victim.1"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "victim", UID: types.UID(p.uid)},
		Reason:         string(cause), Source: corev1.EventSource{Component: "kubelet", Host: "node"}, LastTimestamp: metav1.Now(),
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.False(t, a.over())
	return c, a
}

// From the Node's condition and kubelet's event to the end of the wait.
func TestTheDaemonFollowsTheEvictionsOfItsNode(t *testing.T) {
	t.Parallel()
	c, a := victimAtGate(t, evictions.Eviction)
	_, err := c.kube.CoreV1().Nodes().UpdateStatus(c.ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", ResourceVersion: "2"},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodePIDPressure, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now())},
		}},
	}, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, a.result(), string(throttle.Evicted))
}
