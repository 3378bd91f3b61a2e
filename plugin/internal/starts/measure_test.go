package starts

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// learner is a Starts whose one pod, "web", runs as process 7 of a made-up /proc.
type learner struct {
	*Starts
	t       *testing.T
	root    string
	now     time.Time
	web     podwatch.Pod
	signals throttle.Signals
}

func newLearner(t *testing.T) *learner {
	t.Helper()
	l := &learner{t: t, root: t.TempDir(), now: time.Now(), web: podwatch.Pod{
		UID: "web", Namespace: "default", Name: "web", Patience: 27 * time.Second, Like: podwatch.Like{Owner: "Deployment/web", Images: "i"},
	}}
	l.Starts = aStarts(func(o *Options) {
		o.Roots = usage.Roots{Proc: l.root, Cgroup: "/nowhere"}
		o.Pods = &asked{pods: map[string]podwatch.Pod{"web": l.web}}
	})
	l.uses(0)
	l.runs(l.now, "web", 7)
	return l
}

// uses sets the CPU time that the pod has used since its process began.
func (l *learner) uses(cpu time.Duration) {
	l.t.Helper()
	proc(l.t, l.root, strconv.Itoa(int(cpu/(10*time.Millisecond)))+" 0")
}

// burns lets the pod burn CPU for some seconds.
func (l *learner) burns(from, seconds int) {
	l.t.Helper()
	for i := range seconds {
		l.now = l.now.Add(time.Second)
		l.uses(time.Duration(from+i+1) * time.Second)
		l.round(l.now)
	}
}

func (l *learner) expected() learning.Expectation { return l.o.Memory.Expect(l.web, false) }

func TestWhatAStartTookIsLearnedWhenItIsReady(t *testing.T) {
	t.Parallel()
	l := newLearner(t)
	ticket := l.starts(l.now, "web")
	l.round(l.now)
	l.burns(0, 3)
	assert.Equal(t, learning.None, l.expected().Basis, "the start is not over")
	ticket.End(l.now, reasons.Ready)
	l.round(l.now)
	e := l.expected()
	assert.Equal(t, learning.Owner, e.Basis)
	assert.Equal(t, 1, e.Count)
	assert.InDelta(t, 3, e.CPU.Mean, 1e-6)
	assert.InDelta(t, 3, e.Alone(), 1e-6)
	assert.InDelta(t, 1, e.Peak.Mean, 1e-6)

	// The pod crashes and starts again. A restart is learned separately.
	again := l.joins(l.now, throttle.Request{UID: "web", Name: "default/web", Repeats: 1})
	again.TryStart(l.now)
	l.round(l.now)
	l.burns(3, 1)
	again.End(l.now, reasons.Ready)
	l.round(l.now)
	assert.Equal(t, l.expected(), e)
	assert.InDelta(t, 1, l.o.Memory.Expect(l.web, true).CPU.Mean, 1e-6, "use before the restart does not count")
	assert.Nil(t, l.ledger.pods["web"].course)
}

// Without a probe, a start is over after settleTime, whatever the pod does.
func TestStartsThatSettleWhileTheyBurnAreCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		quiet int // seconds, after it burned
		end   reasons.Reason
		want  uint64
	}{
		"burns":          {0, reasons.Settled, 1},
		"burned before":  {4, reasons.Settled, 0},
		"ready, and hot": {0, reasons.Ready, 0},
	} {
		l := newLearner(t)
		ticket := l.starts(l.now, "web")
		l.round(l.now)
		l.burns(0, 3)
		for range c.quiet {
			l.now = l.now.Add(time.Second)
			l.round(l.now)
		}
		ticket.End(l.now, c.end)
		l.round(l.now)
		assert.Equal(t, c.want, l.SettledBusy.Load(), name)
	}
}

// A start that was not seen from its beginning, or that failed, is not learned.
func TestStartsThatAreNotLearned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		adopted bool
		lasted  int
		end     reasons.Reason
		want    learning.Basis
		count   int
	}{
		"ready":                   {false, 2, reasons.Ready, learning.Owner, 1},
		"settled":                 {false, 2, reasons.Settled, learning.Owner, 1},
		"already under way":       {true, 2, reasons.Ready, learning.None, 0},
		"deleted":                 {false, 2, reasons.Deleted, learning.None, 0},
		"stuck":                   {false, 2, reasons.Stuck, learning.None, 0},
		"crashed early":           {false, 2, reasons.CrashLoop, learning.None, 0},
		"maybe killed by a probe": {false, 14, reasons.Exited, learning.Owner, 0},
	} {
		l := newLearner(t)
		var ticket *throttle.Ticket
		if c.adopted {
			ticket = l.adopts(l.now, throttle.Request{UID: "web", Name: "default/web"}, l.now)
		} else {
			ticket = l.starts(l.now, "web")
		}
		l.round(l.now)
		l.burns(0, c.lasted)
		ticket.End(l.now, c.end)
		l.round(l.now)
		e := l.expected()
		assert.Equal(t, c.want, e.Basis, name)
		assert.Equal(t, c.count, e.Count, name)
		assert.Nil(t, l.ledger.pods["web"].course, name)
	}
}

func TestStartsThatAProbeMayHaveKilled(t *testing.T) {
	t.Parallel()
	assert.True(t, killed(27*time.Second, 27*time.Second))
	assert.False(t, killed(5*time.Second, 27*time.Second))
	assert.False(t, killed(time.Hour, 0), "the pod has no probe that kills")
	assert.False(t, killed(time.Hour, time.Second), "so soon, a crash looks like a kill")
}

// paced returns a learner whose "web" is one of nine pods of a kind, on a node with two cores that the adaptive limit
// paces.
func paced(t *testing.T) (l *learner, watch *asked) {
	t.Helper()
	l = newLearner(t)
	watch, ok := l.o.Pods.(*asked)
	require.True(t, ok)
	l.ledger.limiter.Configure(l.now, throttle.Settings{Adaptive: &adaptive.Settings{Cores: 2}})
	for _, signal := range []throttle.Signal{throttle.SignalCPU, throttle.SignalCPUPressure} {
		l.signals[signal] = throttle.Reading{From: l.now.Add(-2 * time.Second), To: l.now}
	}
	l.ledger.limiter.Observe(l.now, l.signals)
	for i := range 8 {
		web := l.web
		web.UID = strconv.Itoa(i)
		watch.pods[web.UID] = web
	}
	return l, watch
}

// join makes pods join. They wait once wait is called.
func (l *learner) join(uids ...string) (wait func()) {
	all := []*throttle.Ticket{}
	for _, uid := range uids {
		all = append(all, l.joins(l.now, throttle.Request{UID: uid, Name: "default/" + uid}))
	}
	return func() {
		for _, ticket := range all {
			ticket.Wait(l.now)
		}
	}
}

// learns records that each start of the kind idles for 15 s, and then burns CPU.
func (l *learner) learns(at time.Time, cpu time.Duration) {
	l.o.Memory.Learn(at, l.web, false, costs.Start{CPU: cpu, Wall: 15*time.Second + cpu, Idle: 15 * time.Second, Peak: 1})
}

func (l *learner) started() int { return len(l.ledger.limiter.Snapshot(l.now).Starting) }

func TestTheLimiterKnowsWhatStartsAreExpectedToTake(t *testing.T) {
	t.Parallel()
	for name, learn := range map[string]func(l *learner, watch *asked){
		"as they join": func(*learner, *asked) {},
		"when the pod watch has them": func(l *learner, watch *asked) {
			pods := watch.pods
			watch.pods = nil
			l.round(l.now)
			watch.pods = pods
			for _, pod := range pods {
				l.PodChanged(time.Now(), pod, false)
			}
		},
	} {
		for learned, want := range map[bool]int{false: 3, true: 9} {
			l, watch := paced(t)
			if learned {
				l.learns(l.now.Add(time.Second), time.Second/20)
			}
			wait := l.join(slices.Collect(maps.Keys(watch.pods))...)
			learn(l, watch)
			l.round(l.now)
			wait()
			assert.Equal(t, want, l.started(), "%s, learned: %v: %s", name, learned, l.ledger.limiter.Snapshot(l.now).Adaptive)
		}
	}
}

func TestTheLimiterKnowsWhatStartsUse(t *testing.T) {
	t.Parallel()
	for burns, want := range map[bool]int{false: 3, true: 1} { // the limit of feedback; no other start beside one that keeps three cores busy
		l, watch := paced(t)
		l.starts(l.now, "web")
		l.round(l.now)
		for i := range 4 {
			l.now = l.now.Add(time.Second)
			if burns {
				l.uses(time.Duration(3*(i+1)) * time.Second)
			}
			l.round(l.now)
		}
		others := []string{"a", "b", "c", "d"}
		for _, uid := range others {
			watch.pods[uid] = podwatch.Pod{UID: uid, Namespace: "default", Name: uid, Like: podwatch.Like{Owner: "Deployment/" + uid}}
		}
		wait := l.join(others...)
		l.round(l.now)
		wait()
		assert.Equal(t, want, l.started(), l.ledger.limiter.Snapshot(l.now).Adaptive)
	}
}

// The first pods of a herd are admitted before the loop has seen any of them.
func TestTheLimiterKnowsAStartAsItJoins(t *testing.T) {
	t.Parallel()
	for joins, join := range map[string]func(l *learner, pod podwatch.Pod) *throttle.Ticket{
		"in the waiting room": func(l *learner, pod podwatch.Pod) *throttle.Ticket {
			ticket, _ := l.EnterRoom(l.now, Identity{UID: pod.UID, Namespace: "default", Name: pod.UID}, pod, l.now, time.Time{}, true)
			return ticket.t
		},
		"with its sandbox": func(l *learner, pod podwatch.Pod) *throttle.Ticket {
			l.Sandbox(l.now, NewSandbox{Sandbox: &api.PodSandbox{Id: "of-" + pod.UID, Uid: pod.UID, Name: pod.UID, Namespace: "default"}, Pod: pod})
			return l.ledger.limiter.Lookup(pod.UID)
		},
	} {
		l, watch := paced(t)
		l.learns(l.now.Add(time.Second), time.Second/20)
		tickets := []*throttle.Ticket{}
		for _, pod := range watch.pods {
			tickets = append(tickets, join(l, pod))
		}
		for _, ticket := range tickets {
			ticket.Wait(l.now)
		}
		assert.Equal(t, 9, l.started(), "%s: %s", joins, l.ledger.limiter.Snapshot(l.now).Adaptive)
	}
}

// The costs of the waiting pods are known by then. Those of the starts under way were not known when they joined.
func TestTheLimiterKnowsWhatWasLearnedSinceAStartJoined(t *testing.T) {
	t.Parallel()
	l, watch := paced(t)
	ticket := l.starts(l.now, "web")
	l.round(l.now)
	delete(watch.pods, "web")
	wait := l.join(slices.Collect(maps.Keys(watch.pods))...)
	watch.pods["web"] = l.web
	l.round(l.now)
	wait()
	assert.Equal(t, 3, l.started(), l.ledger.limiter.Snapshot(l.now).Adaptive)
	l.burns(0, 1)
	ticket.End(l.now, reasons.Ready)
	l.round(l.now)
	l.round(l.now)
	assert.Equal(t, 4, l.started(), "each start burns for a second, and feedback alone allows three: %s", l.ledger.limiter.Snapshot(l.now).Adaptive)
}

func TestTheLimiterKnowsWhatAdoptedStartsAreExpectedToTake(t *testing.T) {
	t.Parallel()
	l, watch := paced(t)
	l.learns(l.now.Add(-time.Hour), 2*time.Second)
	pods := watch.pods
	watch.pods = nil // it has no pod yet when the runtime lists what runs
	for _, uid := range []string{"0", "1", "2"} {
		l.adopts(l.now, throttle.Request{UID: uid, Name: "default/" + uid}, l.now)
	}
	l.round(l.now)
	watch.pods = pods
	for _, pod := range pods {
		l.PodChanged(time.Now(), pod, false)
	}
	wait := l.join("3", "4", "5")
	l.round(l.now)
	wait()
	l.round(l.now)
	assert.Equal(t, 3, l.started(), "these starts will burn together: %s", l.ledger.limiter.Snapshot(l.now).Adaptive)
}

// The pod watch may know a pod only while it waits. What its start takes may allow it, but not against its policies.
func TestAPodIsInItsGroupsBeforeItsCostCounts(t *testing.T) {
	t.Parallel()
	l, watch := paced(t)
	l.learns(l.now.Add(time.Second), time.Second/20)
	l.enforce(t, "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {starting: {pods: 0}}}")
	known := watch.pods
	watch.pods = nil
	l.join(slices.Collect(maps.Keys(known))...)()
	l.round(l.now)
	under := l.started()
	require.Less(t, under, len(known))
	watch.pods = known
	for uid, pod := range known {
		if l.ledger.limiter.Lookup(uid) != nil && state(l.ledger.limiter.Lookup(uid)) == throttle.Waiting {
			pod.Facts = &startpolicy.Facts{Labels: ofT1}
			l.PodChanged(time.Now(), pod, false)
		}
	}
	l.round(l.now)
	assert.Equal(t, under, l.started())
}

// What is learned of starts after a crash counts for those, also when the pod changes.
func TestARestartIsNotExpectedToTakeWhatAFirstStartTakes(t *testing.T) {
	t.Parallel()
	underWay := func(repeats int) int {
		l, watch := paced(t)
		l.learns(l.now.Add(time.Second), time.Second/20)
		l.o.Memory.Learn(l.now.Add(time.Second), l.web, true, costs.Start{CPU: 30 * time.Second, Wall: 30 * time.Second, Peak: 1})
		var all []*throttle.Ticket
		for uid, pod := range watch.pods {
			all = append(all, l.joins(l.now, throttle.Request{UID: uid, Name: "default/" + uid, Repeats: repeats}))
			l.PodChanged(time.Now(), pod, false)
		}
		l.round(l.now)
		for _, ticket := range all {
			ticket.Wait(l.now)
		}
		return l.started()
	}
	assert.Equal(t, 9, underWay(0))
	assert.Less(t, underWay(1), 9)
}
