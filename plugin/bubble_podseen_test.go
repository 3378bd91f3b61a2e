package plugin

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
)

// podSeen is what the judge knows of a pod.
type podSeen struct {
	shape     *shapes.Pod
	mayFail   bool
	processes int
	runs      map[string]int // of each container
	exited    map[string]int // of each container, in this sandbox
	container string         // that it asked for last
	phase     corev1.PodPhase
	deleted   time.Time // when that was requested
	removed   bool
	over      bool // it succeeded or failed
	wasReady  bool

	arrived      time.Time // since when it waits for a start; zero if it does not
	sandboxAsked time.Time // when it asked for its sandbox; zero if it was refused since
	preparing    bool      // it has a sandbox, and has not asked for a container
	asked        time.Time // when it last asked for what it got
	tried        time.Time // when it last asked for anything
	made         time.Time // when the container was made that is being started; zero if none is
	gate         time.Time // since when its hook waits
	room         time.Time // since when it waits in the waiting room
	left         time.Time // since when it had waited there, if it left for its sandbox; zero if it did not
	turnedAway   bool      // it left to come back later
	slotInRoom   bool      // it left with its slot, because it cannot wait in the gate
	refused      time.Time // since when the daemon refused what is not started yet
	passed       time.Time // since when the hook had waited that was admitted; zero if none was for the container that is being started
	unpaced      bool      // its hook left without a decision
	failedStart  bool      // its last container never ran
	excused      bool      // for a reason that is documented or a fault
	rejected     int       // how often another plugin rejected a container of it
	byOthers     bool      // the last time
	expired      bool      // because its wait in the gate ended without a turn

	events int // on it

	start *startSeen // the last; nil if there was none
}

// startSeen is a start, from the first process on.
type startSeen struct {
	arrived    time.Time // since when it waited
	admitted   time.Time // or a little earlier than that
	began      time.Time
	unpaced    bool
	lent       bool            // it may have a lent slot
	overSignal bool            // it began for its maxWait, while the limit on a signal held starts
	ended      time.Time       // when the reason for its end was seen
	exits      time.Time       // when its first app container exits by itself; zero if none does
	inferred   bool            // it may be over by the node's own signs, or a new daemon does not know of it
	latest     time.Time       // when its last process began
	processes  int             // that run, as far as kubelet has noticed
	initEnds   time.Time       // when the init container that began last exits; zero if an app or a sidecar began after it
	idle       time.Time       // since when none runs
	running    map[string]bool // app containers
	ready      map[string]bool
	allRunning time.Time
}

// isApp reports whether a container of this name is an app container, and no init container or sidecar.
func isApp(name string) bool { return strings.HasPrefix(name, "app") }

// takesSlotWithSandbox reports whether the pod gets its sandbox only together with a slot, because it may not fail, or
// got it so.
func (p *podSeen) takesSlotWithSandbox() bool {
	return !p.mayFail || p.slotInRoom
}

// under reports whether the pod has a start that is not over. A start that is stuck does not count.
func (p *podSeen) under() bool { return p.start != nil && p.start.ended.IsZero() }

func (p *podSeen) arrive(now time.Time) {
	if p.arrived.IsZero() && !p.under() {
		p.arrived = now
	}
}

func (p *podSeen) end(now time.Time) {
	if p.under() {
		p.start.ended = now
	}
}

// dies notes that its sandbox is gone, with all that ran in it.
func (p *podSeen) dies(now time.Time) {
	p.end(now)
	p.preparing, p.made = false, time.Time{}
	if p.start != nil {
		p.start.processes, p.start.idle = 0, now
		clear(p.start.running)
	}
}

func (p *podSeen) exits(container string, now time.Time) {
	p.exited[container]++
	if p.start != nil {
		if p.start.processes--; p.start.processes == 0 {
			p.start.idle = now
		}
	}
	if !p.under() || !isApp(container) {
		return
	}
	if delete(p.start.running, container); len(p.start.running) == 0 {
		p.end(now)
	}
}

func (p *podSeen) getsReady(container string, now time.Time) {
	if !isApp(container) || p.start == nil {
		return
	}
	p.start.ready[container] = true
	if len(p.start.ready) == p.shape.Containers {
		p.wasReady = true
		if p.shape.TellsReady() {
			p.end(now)
		}
	}
}

// well reports whether the pod is where it should be.
func (p *podSeen) well() bool {
	switch {
	case !p.deleted.IsZero():
		return p.removed
	case p.shape.Policy != corev1.RestartPolicyAlways:
		return p.phase == corev1.PodSucceeded
	}
	return p.wasReady && p.arrived.IsZero() && (p.runs["app0"] > p.shape.Fails() || p.shape.Fails() == 0)
}

func (p *podSeen) String() string {
	return fmt.Sprintf("phase %s, %d processes, waits: %t, in the gate: %t", p.phase, p.processes, !p.arrived.IsZero(), !p.gate.IsZero())
}

// repeats returns how often the container that is started has exited in this sandbox, up to as many as count.
func (p *podSeen) repeats() int { return min(p.exited[p.container], 5) }

// surely reports whether the pod must hold a slot. One that never waits holds one only if one is free.
func (j *judge) surely(p *podSeen, now time.Time) bool {
	s := p.start
	if s == nil || s.unpaced || s.lent || s.inferred || p.shape.Exempt() || !s.ended.IsZero() || !p.deleted.IsZero() {
		return false
	}
	if j.doubts(s.began) || !s.exits.IsZero() && !now.Before(s.exits) || now.Sub(s.admitted) >= j.least(s.admitted, shapes.Limits.EffectiveStartTimeout)-time.Second {
		return false
	}
	return p.shape.TellsReady() || s.allRunning.IsZero() || now.Sub(s.allRunning) < j.least(s.allRunning, shapes.Limits.EffectiveSettleTime)-time.Second
}

// runsNothing reports whether none of its processes runs, between an init container and the next one.
func (s *startSeen) runsNothing(now time.Time) bool {
	return s.processes == 0 || s.processes == 1 && !s.initEnds.IsZero() && !now.Before(s.initEnds)
}

// inferLocked notes which starts may be over by the node's own signs, where the pod watch does not tell, and which a
// new daemon does not know of, because it finds no container of them.
func (j *judge) inferLocked(now time.Time) {
	const allRan, noneRuns = 8 * time.Second, 900 * time.Millisecond
	for _, p := range j.pods {
		if p.under() && j.up && p.start.began.Before(j.switched) && now.Sub(j.switched) < settled && p.start.runsNothing(now) {
			p.start.inferred = true
		}
	}
	if !j.uninformedLocked(now) {
		return
	}
	for _, p := range j.pods {
		if p.under() && (now.Sub(p.start.latest) > allRan || j.shape.Standalone && p.start.processes == 0 && now.Sub(p.start.idle) > noneRuns) {
			p.start.inferred = true
		}
	}
}

// stalls reports whether the pod's slot may be lent to others, because none of its processes has run for noProgressAfter.
func (p *podSeen) stalls(now time.Time) bool {
	const noProgressAfter = 10 * time.Second
	return p.start != nil && p.start.processes == 0 && now.Sub(p.start.idle) > noProgressAfter-2*time.Second
}

// maybe reports whether the pod may hold a slot.
func (j *judge) maybe(p *podSeen, now time.Time) bool {
	const late = 2 * time.Second
	if p.gate.IsZero() && (!p.made.IsZero() || p.preparing && p.takesSlotWithSandbox()) || !p.deleted.IsZero() && !p.removed {
		return true
	}
	s := p.start
	switch {
	case s == nil:
		return false
	case !s.ended.IsZero():
		return now.Sub(s.ended) < late
	case now.Sub(j.counts(s.began)) >= j.most(s.admitted, shapes.Limits.EffectiveStartTimeout)+late:
		return false
	}
	return p.shape.TellsReady() || s.allRunning.IsZero() || now.Sub(j.counts(s.allRunning)) < j.most(s.allRunning, shapes.Limits.EffectiveSettleTime)+late
}

// doubts reports whether the daemon came after a time, and kubelet's times are by a clock that was set: no fault sets
// the daemon's, which believes no time in its future.
func (j *judge) doubts(began time.Time) bool {
	return !j.faults[shapes.ClockIsSet].IsZero() && began.Before(j.switched)
}

// counts returns since when what began at a time may count for the daemon.
func (j *judge) counts(began time.Time) time.Time {
	if j.doubts(began) {
		return j.steady
	}
	return began
}

// weighs reports whether the pod may count as a start of its namespace: stuck ones do for one more startTimeout.
func (j *judge) weighs(p *podSeen, now time.Time) bool {
	return j.maybe(p, now) || p.start != nil && p.start.ended.IsZero() && now.Sub(p.start.began) < 3*j.most(p.start.admitted, shapes.Limits.EffectiveStartTimeout)
}
