package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/waiter"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// The rules that a run must keep.
const (
	limitKept     = "no more pods start than the limit"
	signalKept    = "no pod starts while a signal is above its limit"
	debtKept      = "each start adds to a signal until that shows it"
	rateKept      = "no more pods start than the rate limit allows"
	runningKept   = "no more pods run than the StartPolicy allows"
	deletedLeaves = "a deleted pod leaves the gate, and starts nothing"
	runtimeBears  = "pods wait in no way that the runtime cannot bear"
	failsInGate   = "a pod that kubelet does not start again never waits in the gate"
	exemptStarts  = "an exempt pod never waits"
	orderKept     = "the order is by priority, first starts, arrival"
	turnKept      = "a pod that leaves the waiting room gets its sandbox"
	fairKept      = "the namespace with the fewest starts is next"
	noneHeldIdle  = "no pod is held while a slot is free"
	showsNoFault  = "a waiting pod shows no failed start"
	countsNoRuns  = "no restart is counted for a container that never ran"
	waitsBounded  = "no hook waits longer than the gate's timeout"
	everyPodRuns  = "every pod starts within its bound"
	noSlotIdle    = "a herd starts in the time that its work takes"
	saysSame      = "status and why say what is seen"
	writesLittle  = "events and writes stay below their bounds"
	nothingLeft   = "nothing is left at the end"
	runtimeLives  = "the runtime never ends by itself"
	comesBack     = "the daemon is connected to the runtime"
	noErrorLogged = "no error is logged without a fault"
)

// complaint is a rule that was broken.
type complaint struct {
	rule, text string
	at         time.Duration
}

// judge sees what kubelet, the runtime and the hooks see, and knows the rules. It asks the daemon nothing. Where it cannot
// know whether a start holds a slot, it takes what excuses the daemon.
type judge struct {
	shape   *shapes.Shape
	began   time.Time
	runtime *runtimetest.Runtime

	mu         sync.Mutex
	pods       map[types.UID]*podSeen
	names      []types.UID // in the order of their creation
	inForce    []inForce
	up         bool
	steady     time.Time // since when no fault disturbs the daemon
	connected  time.Time // when it was, last
	blind      bool      // the API server is away
	stateless  bool      // the daemon's state folder cannot be used
	sees       time.Time // since when it is back
	switched   time.Time // when the daemon began, or ended
	faults     map[shapes.FaultKind]time.Time
	gateWaits  int
	roomWaits  int
	refusals   int
	written    int           // to the API server, without events
	lent       time.Time     // when slots may have been lent last
	last       time.Duration // how long the run was
	free       time.Time     // since when a slot is free and the judge can know that; zero if none is
	winding    bool
	disorders  []disorder  // of this moment
	rated      []time.Time // the starts under the present rate limit
	starts     []time.Time // that a signal may not show yet
	admitted   []time.Time // the starts that a steady daemon admitted
	measured   []measured  // what the signal was of late, since its limit is in force
	closed     time.Time   // since when the limit on a signal surely holds starts; zero if it may not
	open       time.Time   // since when it surely holds none
	complaints []complaint
	documented reasons.Reason // of a hook whose failure the manual explains
	excepted   map[string]int // starts that a documented exception excused, by its name
	trace      []string
}

type inForce struct {
	since time.Time
	shapes.Limits
}

func newJudge(s *shapes.Shape) *judge {
	now := time.Now()
	return &judge{
		shape: s, began: now, pods: map[types.UID]*podSeen{}, faults: map[shapes.FaultKind]time.Time{}, excepted: map[string]int{},
		inForce: []inForce{{now, s.Limits}}, documented: reasons.GateExpired,
	}
}

func (j *judge) begins() { j.began = time.Now() }

func (j *judge) tracef(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.traceLocked(format, args...)
}

func (j *judge) traceLocked(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		j.trace = append(j.trace, fmt.Sprintf("%12.3f  %s", time.Since(j.began).Seconds(), text))
	}
}

// told returns what was seen. What happened at the same moment stands by pod, as the order in which goroutines run is none of
// the run.
func (j *judge) told() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.SortStableFunc(j.trace, func(a, b string) int {
		const times = 14 // the width of a time
		nameA, _, _ := strings.Cut(a[times:], " ")
		nameB, _, _ := strings.Cut(b[times:], " ")
		return cmp.Or(cmp.Compare(a[:times], b[:times]), cmp.Compare(nameA, nameB))
	})
	return strings.Join(j.trace, "\n")
}

func (j *judge) complainf(rule, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.complainLocked(rule, format, args...)
}

func (j *judge) complainLocked(rule, format string, args ...any) {
	c := complaint{rule, fmt.Sprintf(format, args...), time.Since(j.began)}
	j.complaints = append(j.complaints, c)
	j.traceLocked("BROKEN: %s: %s", rule, c.text)
}

// verdict returns the first complaint, and how many there are.
func (j *judge) verdict() (first *complaint, n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.complaints) == 0 {
		return nil, 0
	}
	return &j.complaints[0], len(j.complaints)
}

// Levels implements [logrus.Hook].
func (j *judge) Levels() []logrus.Level {
	return logrus.AllLevels[:logrus.ErrorLevel+1]
}

// Fire implements [logrus.Hook].
func (j *judge) Fire(e *logrus.Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if why := fmt.Sprint(e.Data[logrus.ErrorKey]); !j.blind || !strings.Contains(why, errAway.Error()) {
		j.complainLocked(noErrorLogged, "%s %v", e.Message, e.Data)
	}
	return nil
}

// settled is how long after a fault the daemon may take until the judge knows again what it must do.
const settled = 20 * time.Second

func (j *judge) daemonIs(up bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.up, j.steady, j.switched, j.connected = up, time.Now(), time.Now(), time.Now()
	j.inferLocked(time.Now())
}

func (j *judge) faulted(kind shapes.FaultKind) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.faults[kind] = time.Now()
	if kind.Disturbs() {
		j.steady = time.Now()
	}
}

// connectsWithin is how long the daemon may be without a connection to a runtime that runs, and whose pods can be listed
// without harm.
const connectsWithin = 2 * time.Minute

// connectionLocked notes whether the daemon is connected to the runtime: else it cannot decide.
func (j *judge) connectionLocked(now time.Time) {
	if j.runtime == nil || !j.up || j.runtime.HasPlugin("pod-pacemaker") {
		j.connected = now
		return
	}
	j.steady = now
	const each, largest, most = 32 << 10, 9, 4 << 20
	if 2*j.runtime.Listed()+largest*each > most || j.disturbedLocked(now.Add(-connectsWithin)) {
		j.connected = now // it may have to stay away
	} else if now.Sub(j.connected) > connectsWithin {
		j.complainLocked(comesBack, "not since %s", now.Sub(j.connected))
		j.connected = now
	}
}

// steadyLocked reports whether the daemon decides, and no fault disturbs it.
func (j *judge) steadyLocked(now time.Time) bool {
	return j.up && now.Sub(j.steady) >= settled
}

// blindIs notes whether the API server is away. The daemon still keeps the limits then, but knows less of the pods.
func (j *judge) blindIs(away bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.blind, j.sees = away, time.Now()
}

// informedLocked reports whether the daemon is steady, and knows what kubelet reports.
func (j *judge) informedLocked(now time.Time) bool {
	return j.steadyLocked(now) && !j.uninformedLocked(now)
}

// uninformedLocked reports whether the API server is away, or was just now: the daemon asks again after a while.
func (j *judge) uninformedLocked(now time.Time) bool {
	const relists = time.Minute
	return j.blind || now.Sub(j.sees) < relists
}

// rejects plays another plugin, which rejects the first containers of some pods.
func (j *judge) rejects(pod *api.PodSandbox, container *api.Container) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.pods[types.UID(pod.GetUid())]
	if p.rejected >= p.shape.Rejected {
		return nil
	}
	p.rejected++
	p.byOthers = true
	j.traceLocked("%s  is rejected by another plugin %s", p.shape.Name, container.GetName())
	return errors.New("another plugin rejects it")
}

func (j *judge) configures(l shapes.Limits) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.inForce = append(j.inForce, inForce{time.Now(), l})
	j.rated, j.measured, j.closed, j.open = nil, nil, time.Time{}, time.Time{}
}

func (j *judge) present() shapes.Limits {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.inForce[len(j.inForce)-1].Limits
}

// since returns the limits that were in force at any moment since a time, the present ones last.
func (j *judge) since(t time.Time) []shapes.Limits {
	var all []shapes.Limits
	for i, f := range j.inForce {
		if i == len(j.inForce)-1 || !j.inForce[i+1].since.Before(t) {
			all = append(all, f.Limits)
		}
	}
	return all
}

// most and least return the largest and the smallest value of the limits in force since a time.
func (j *judge) most(t time.Time, of func(shapes.Limits) time.Duration) (d time.Duration) {
	for _, l := range j.since(t) {
		d = max(d, of(l))
	}
	return d
}

func (j *judge) least(t time.Time, of func(shapes.Limits) time.Duration) time.Duration {
	d := time.Duration(1 << 62)
	for _, l := range j.since(t) {
		d = min(d, of(l))
	}
	return d
}

// mostAtATime returns the largest limit on starts since a time; 0 if not all of that time had one in force.
func (j *judge) mostAtATime(t time.Time) (n int) {
	for _, l := range j.since(t) {
		if !l.Enforced() {
			return 0
		}
		n = max(n, l.AtMost())
	}
	return n
}

func (j *judge) arrives(pod *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	shape := j.shape.Pod(pod.UID)
	j.pods[pod.UID] = &podSeen{shape: shape, mayFail: j.shape.MayFail(shape), runs: map[string]int{}, exited: map[string]int{}}
	j.names = append(j.names, pod.UID)
}

func (j *judge) deletes(pod *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p := j.pods[pod.UID]; p.deleted.IsZero() {
		p.deleted = time.Now()
	}
}

// windsDown says that all pods are deleted from now on.
func (j *judge) windsDown() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.winding = true
}

func (j *judge) hookWaits(h wire.Hello) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.orderLocked(time.Now())
	p := j.pods[types.UID(h.PodUID)]
	p.gate = time.Now()
	j.judgeExemptionLocked(p)
	if p.shape.Policy == corev1.RestartPolicyNever && !j.shape.GateAlways {
		j.complainLocked(failsInGate, "%s", p.shape.Name)
	}
	if !j.shape.BearsHooks() {
		j.complainLocked(runtimeBears, "%s waits in the gate", p.shape.Name)
	}
	j.gateWaits++
	j.traceLocked("%s  waits in the gate", p.shape.Name)
}

func (j *judge) hookLeaves(h wire.Hello, o waiter.Outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.orderLocked(time.Now())
	p := j.pods[types.UID(h.PodUID)]
	if waited := time.Since(p.gate); waited > j.shape.GateTimeout()+time.Second {
		j.complainLocked(waitsBounded, "%s waited for %s", p.shape.Name, waited)
	}
	since := p.gate
	p.gate, p.unpaced = time.Time{}, o.Unpaced
	what := "leaves the gate, admitted"
	switch {
	case o.Unpaced:
		what = "leaves the gate, unpaced"
	case !o.Starts:
		reason, _, _ := strings.Cut(o.Reason, ":")
		what = "leaves the gate, not started: " + reason
		if p.expired = reason == string(j.documented); p.expired {
			j.excepted[reason]++ // a promise that the daemon could not keep, which it counts itself
		}
	default:
		p.asked, p.passed = time.Now(), since
		j.starts = append(j.starts, time.Now())
		if !p.deleted.IsZero() && time.Since(p.deleted) > time.Second && since.Before(p.deleted) && j.informedLocked(time.Now()) {
			j.complainLocked(deletedLeaves, "%s starts %s after its deletion", p.shape.Name, time.Since(p.deleted))
		}
		j.judgeOrderLocked(p, time.Now())
	}
	j.traceLocked("%s  %s", p.shape.Name, what)
}

func (j *judge) entersRoom(uid types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.pods[uid]
	p.room, p.preparing = time.Now(), false
	j.roomWaits++
	j.traceLocked("%s  enters the waiting room", p.shape.Name)
}

func (j *judge) leavesRoom(uid types.UID, o waiter.Outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, now := j.pods[uid], time.Now()
	if waited := now.Sub(p.room); waited > j.shape.RoomTimeout()+time.Second {
		j.complainLocked(waitsBounded, "%s waited in the room for %s", p.shape.Name, waited)
	}
	if now.Sub(p.room) > heldInRoom {
		j.judgeExemptionLocked(p)
	}
	if o.Starts && !p.deleted.IsZero() && now.Sub(p.deleted) > heldMost && p.room.Before(p.deleted) && j.informedLocked(now) {
		j.complainLocked(deletedLeaves, "%s comes out of the room to start %s after its deletion", p.shape.Name, now.Sub(p.deleted))
	}
	if p.turnedAway = !o.Starts; o.Starts && !o.Unpaced {
		p.left = p.room
	}
	p.slotInRoom = o.Starts && !o.Unpaced && o.Reason != string(gate.TurnNear)
	p.room, p.preparing, p.sandboxAsked = time.Time{}, o.Starts, now
	j.traceLocked("%s  leaves the waiting room, starts: %t, unpaced: %t, %s", p.shape.Name, o.Starts, o.Unpaced, o.Reason)
}

// reports sees the status that kubelet writes.
func (j *judge) reports(pod *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.pods[pod.UID]
	p.phase = pod.Status.Phase
	p.over = p.phase == corev1.PodSucceeded || p.phase == corev1.PodFailed
}

// happens sees what kubelet does.
func (j *judge) happens(pod *corev1.Pod, what runtimetest.Happening, container string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, now := j.pods[pod.UID], time.Now()
	j.traceLocked("%s  %s", p.shape.Name, strings.TrimSpace(string(what)+" "+container))
	switch what {
	case runtimetest.AsksSandbox:
		p.sandboxAsked, p.tried, p.left, p.preparing = now, now, time.Time{}, true
		p.turnedAway = false
		clear(p.exited)
		p.arrive(now)
	case runtimetest.SandboxRefused, runtimetest.CreateRefused:
		p.preparing, p.made, p.sandboxAsked = false, time.Time{}, time.Time{}
		if !p.byOthers {
			j.refusals++
			if what == runtimetest.SandboxRefused && !j.shape.BearsRefusals() && !p.turnedAway && !j.disturbedLocked(now.Add(-settled)) {
				j.complainLocked(runtimeBears, "%s is refused its sandbox", p.shape.Name)
			}
			j.judgeTurnLocked(p, what)
			j.judgeRefusalLocked(p)
			j.judgeExemptionLocked(p)
			if p.refused.IsZero() {
				p.refused = now
			}
		}
		p.byOthers = false
	case runtimetest.AsksContainer:
		p.preparing, p.asked, p.tried, p.container = false, now, now, container
		if p.takesSlotWithSandbox() && p.processes == 0 && !p.sandboxAsked.IsZero() {
			p.asked = p.sandboxAsked
		}
		p.arrive(now)
	case runtimetest.Starts:
		p.made, p.passed, p.unpaced, p.expired = now, time.Time{}, false, false
	case runtimetest.RestartsCounted:
		j.judgeCountLocked(p)
	case runtimetest.Runs:
		j.runsLocked(p, container)
	case runtimetest.StartFailed:
		p.failedStart, p.made = true, time.Time{}
		p.excused = p.expired || !p.deleted.IsZero() || j.disturbedLocked(now.Add(-j.shape.RequestTimeout)) || j.promiseBrokenLocked(now)
		if !p.excused {
			j.complainLocked(showsNoFault, "%s shows RunContainerError", p.shape.Name)
		}
	case runtimetest.SandboxDied:
		p.dies(now)
	case runtimetest.Exits:
		p.exits(container, now)
	case runtimetest.ProbeKills:
		if p.start != nil {
			p.start.exits = now
		}
	case runtimetest.Ready:
		p.getsReady(container, now)
	case runtimetest.BacksOff:
		if !p.failedStart { // else its wait goes on
			p.end(now)
		}
	case runtimetest.Over:
		p.end(now)
		p.preparing, p.made, p.arrived = false, time.Time{}, time.Time{}
	case runtimetest.Removed:
		p.removed = true
	}
}

// youngest returns the pod that began to start last; empty if none starts.
func (j *judge) youngest() (uid types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	began := time.Time{}
	for _, name := range j.names {
		if p := j.pods[name]; p.under() && p.shape.Policy == corev1.RestartPolicyAlways && p.start.began.After(began) {
			uid, began = name, p.start.began
		}
	}
	return uid
}

// disturbedLocked reports whether kubelet or the runtime was restarted since a time.
func (j *judge) disturbedLocked(since time.Time) bool {
	for kind, at := range j.faults {
		if kind.Disturbs() && !at.Before(since) {
			return true
		}
	}
	return false
}

// promiseBrokenLocked reports whether a change of the limits may have made a wait in the gate longer than was foreseen.
func (j *judge) promiseBrokenLocked(now time.Time) bool {
	return len(j.since(now.Add(-j.shape.RequestTimeout))) > 1
}

// judgeCountLocked judges a restart that kubelet counts.
func (j *judge) judgeCountLocked(p *podSeen) {
	if p.failedStart && !p.excused {
		j.complainLocked(countsNoRuns, "%s", p.shape.Name)
	}
	p.failedStart = false
}

// everyPodIsWell reports whether every pod is where it should be.
func (j *judge) everyPodIsWell() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !slices.ContainsFunc(j.names, func(uid types.UID) bool { return !j.pods[uid].well() })
}

func (j *judge) complainUnlessWell() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.judgeSpanLocked()
	j.judgeWritesLocked()
	for _, uid := range j.names {
		p := j.pods[uid]
		lost := p.phase == corev1.PodFailed && (j.shape.GateAlways || !j.faults[shapes.KubeletRestarts].IsZero() || !j.faults[shapes.RuntimeRestarts].IsZero())
		if !p.well() && !lost {
			j.complainLocked(everyPodRuns, "%s: %s", p.shape.Name, p)
		}
	}
}
