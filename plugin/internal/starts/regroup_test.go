package starts

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// An edit of the groups must not show a waiting pod a group with room that it does not have. The room would come from
// pods that have already left the group, or that have not yet joined it.
func TestPodsAreRegroupedInOneStep(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		groupedBy := func(path string) {
			n.enforce(t, "{selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 4}}, groupBy: "+path+"}")
		}
		values := func(pod *podwatch.Pod) {
			pod.Facts = &startpolicy.Facts{Values: map[string]string{".spec.nodeName": "node", ".spec.hostname": "host"}}
		}
		groupedBy(".spec.nodeName")
		for i := range 4 {
			n.pod(fmt.Sprint("runs-", i), values).hasStarted("app")
		}
		var waiting []*testPod
		for i := range 8 {
			p := n.pod(fmt.Sprint("waits-", i), values)
			require.False(t, p.run().Granted)
			n.ledger.limiter.Lookup(p.uid).Wait(time.Now())
			waiting = append(waiting, p)
		}
		groupedBy(".spec.hostname")
		for _, p := range waiting {
			p.is(throttle.Waiting, reasons.PolicyRunning)
		}
		assert.Equal(t, "host", n.usage().Key.Group)
	})
}

// The runtime reports all labels of a pod. Only those that policies name are kept.
func TestOnlyLabelsThatPoliciesNameAreKept(t *testing.T) {
	t.Parallel()
	s := aStarts()
	sandbox := &api.PodSandbox{Uid: "u", Labels: map[string]string{"throttle": "front", "team": strings.Repeat("x", 1<<18)}}
	assert.Nil(t, subjectOf(sandbox, podwatch.Pod{}).match(s.inForce.Load()).Facts.Labels)
	s.enforce(t, t1)
	assert.Equal(t, map[string]string{"throttle": "front"}, subjectOf(sandbox, podwatch.Pod{}).match(s.inForce.Load()).Facts.Labels)
}

func TestTheWeightOfAPodsCgroupGivesItsCPURequest(t *testing.T) {
	t.Parallel()
	shares := func(n uint64) *api.PodSandbox {
		return &api.PodSandbox{Linux: &api.LinuxPodSandbox{PodResources: &api.LinuxResources{Cpu: &api.LinuxCPU{Shares: api.UInt64(n)}}}}
	}
	for weight, milli := range map[uint64]int64{0: 0, 2: 0, 204: 200, 307: 300, 1024: 1000} {
		assert.Equal(t, milli, milliCPU(shares(weight)), weight)
	}
}

const noneOfT1Starts = "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {starting: {pods: 0}}}"

// Without a pod watch, the runtime's list of sandboxes gives the labels of a pod whose hook outlived an earlier daemon.
func TestAHookThatOutlivedTheDaemonWaitsInItsGroups(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		n.enforce(t, noneOfT1Starts)
		for _, name := range []string{"held", "free"} {
			p := n.stranger(name)
			p.sandbox.Id, p.sandbox.Pid = "s-"+name, 7
			if name == "held" {
				p.sandbox.Labels = ofT1
			}
			n.lists([]*testPod{p}, &api.Container{Id: "c", PodSandboxId: p.sandbox.GetId(), Name: "app", State: api.ContainerState_CONTAINER_CREATED})
			ticket := n.EnterGate(time.Now(), Identity{UID: p.uid, Namespace: "default", Name: name}, "c", time.Now(), time.Time{})
			assert.Equal(t, name == "free", ticket.Outlook.State == throttle.Starting, name)
		}
	}, standalone)
}

// A pod is in the groups of what is known of it last: nothing but its name when it waits in the waiting room, then what
// its sandbox says, then what the pod watch reports.
func TestAPodIsInTheGroupsOfWhatIsKnownOfIt(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		n.enforce(t, noneOfT1Starts)
		p := n.stranger("p")
		arrive := func() {
			_, waits := n.EnterRoom(time.Now(), Identity{UID: p.uid, Namespace: "default", Name: "p"}, podwatch.Pod{}, time.Now(), time.Time{}, true)
			require.True(t, waits)
		}
		groups := func() (all []throttle.GroupKey) {
			n.locked(func(l *ledger) {
				for _, g := range l.pods[p.uid].matched.groups {
					all = append(all, g.Key)
				}
			})
			return all
		}
		inT1 := []throttle.GroupKey{{Policy: "t1"}}
		arrive()
		assert.Empty(t, groups())
		p.sandbox.Labels = ofT1
		p.isHeld(reasons.PolicyStarting)
		assert.Equal(t, inT1, groups())
		arrive()
		assert.Equal(t, inT1, groups(), "an arrival says nothing new")
		n.PodChanged(time.Now(), podwatch.Pod{UID: p.uid, Namespace: "default", Name: "p"}, false)
		assert.Equal(t, inT1, groups(), "the watch has no facts yet")
		n.PodChanged(time.Now(), podwatch.Pod{UID: p.uid, Namespace: "default", Name: "p", Facts: &startpolicy.Facts{}}, false)
		assert.Empty(t, groups(), "the label is gone")
	})
}

// A step that asks for a start uses what the pod watch knows then: it may have reported nothing yet.
func TestAStartIsInTheGroupsOfWhatIsKnownThen(t *testing.T) {
	t.Parallel()
	in := Identity{UID: "p", Namespace: "default", Name: "p"}
	for name, asks := range map[string]func(p *testPod) (Ticket, bool){
		"a container": func(p *testPod) (Ticket, bool) {
			a := p.asks("app")
			return a.Ticket, a.MayWait
		},
		"a hook": func(p *testPod) (Ticket, bool) {
			return p.n.EnterGate(time.Now(), in, "c", time.Now(), time.Time{}).Ticket, true
		},
		"the waiting room": func(p *testPod) (Ticket, bool) {
			process, waits := p.n.EnterRoom(time.Now(), in, p.n.watch.pods[p.uid], time.Now(), time.Time{}, true)
			return process.Ticket, waits
		},
	} {
		onUnlimitedNode(t, func(t *testing.T, n *node) {
			n.enforce(t, noneOfT1Starts)
			p := n.stranger("p")
			n.watch.pods[p.uid] = podwatch.Pod{UID: p.uid, Namespace: "default", Name: "p", Facts: &startpolicy.Facts{Labels: ofT1}}
			ticket, waits := asks(p)
			require.True(t, waits, name)
			d := ticket.TryStart(time.Now())
			assert.Equal(t, reasons.PolicyStarting, d.Reason, name)
		})
	}
}

// The daemon may not be asked about a start, and the pod watch may not know its pod yet.
func TestAStartThatWasNotAskedForCountsInItsGroups(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		n.enforce(t, "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {starting: {pods: 1}}}")
		p := n.stranger("p")
		p.sandbox.Labels = ofT1
		n.ContainerStarted(p.sandbox, p.isMade("app"))
		p.is(throttle.Starting, reasons.Adopted)
		assert.EqualValues(t, 1, n.usage().Starting.Pods)
	}, standalone)
}

// Nothing is lost if policies change while others change.
func TestAChangeOfPoliciesDuringAnotherIsKept(t *testing.T) {
	t.Parallel()
	s := aStarts()
	now, calls := time.Now(), 0
	s.enforce(t, t1)
	s.changePolicies(now, func(set *policies.Set) (*policies.Set, *policies.Changes) {
		if calls++; calls == 1 {
			s.changePolicies(now, func(set *policies.Set) (*policies.Set, *policies.Changes) {
				return set.InMode(now, v1alpha1.ModeDisabled)
			})
		}
		return set.WithPolicies(now, set.State())
	})
	assert.Equal(t, 2, calls)
	assert.Empty(t, s.inForce.Load().Limits(), "the mode is Disabled")
}

// Pods are matched without a lock. Whatever changes meanwhile, each pod is in its groups by the policies in force.
func TestPodsAreInTheirGroupsWhateverChangesMeanwhile(t *testing.T) {
	t.Parallel()
	s := aStarts()
	change := func(round int) {
		s.enforce(t, fmt.Sprintf("{selector: {terms: [{podSelector: {}}]}, groupBy: \".metadata.labels['%d']\", limits: {running: {pods: 4}}}", round%2))
	}
	facts := &startpolicy.Facts{Values: map[string]string{".metadata.labels['0']": "even", ".metadata.labels['1']": "odd"}}
	change(1)
	for round := range 300 {
		var all sync.WaitGroup
		s.mu.Lock() // all find groups, and wait for the lock
		all.Go(func() { change(round) })
		for i := range 3 {
			uid := fmt.Sprint(round, "-", i)
			all.Go(func() {
				s.PodChanged(time.Now(), podwatch.Pod{UID: uid, Namespace: "default", Name: uid, Facts: facts}, false)
			})
		}
		for range 20 {
			runtime.Gosched()
		}
		s.mu.Unlock()
		all.Wait()
		want := throttle.GroupKey{Policy: "t1", Group: []string{"even", "odd"}[round%2]}
		s.locked(func(l *ledger) {
			require.Len(t, l.pods, 3)
			for uid, p := range l.pods {
				require.Len(t, p.matched.groups, 1)
				require.Equal(t, want, p.matched.groups[0].Key, uid)
			}
		})
		for i := range 3 {
			s.podDeleted(time.Now(), fmt.Sprint(round, "-", i))
		}
	}
}
