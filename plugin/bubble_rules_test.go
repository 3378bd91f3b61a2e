package plugin

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
)

// lateness is how long a start may take from its admission until the judge sees it.
const lateness = 200 * time.Millisecond

// runsLocked notes a process, and judges the start that begins with it.
func (j *judge) runsLocked(p *podSeen, container string) {
	now := time.Now()
	j.connectionLocked(now)
	p.processes++
	p.runs[container]++
	p.made = time.Time{}
	s := p.start
	stuck := j.appOfStuckLocked(p, container, now)
	if !p.under() || stuck || !p.passed.IsZero() || !p.refused.IsZero() {
		unpaced := p.unpaced || !j.up || now.Sub(j.steady) < lateness // it keeps the limit as soon as it is connected
		waited := p.arrived
		switch {
		case stuck: // at its old place in the queue
			waited = s.arrived
		case waited.IsZero() && !p.refused.IsZero(): // a daemon that came between two init containers does not know of the first
			waited = p.refused
		case waited.IsZero() && !p.passed.IsZero():
			waited = p.passed
		case waited.IsZero():
			waited = p.asked
		}
		s = &startSeen{
			arrived: waited, admitted: p.asked, began: now, unpaced: unpaced,
			running: map[string]bool{}, ready: map[string]bool{},
		}
		s.lent = j.judgeLimitLocked(p, waited, unpaced)
		s.overSignal = j.judgeSignalLocked(p, waited, unpaced)
		j.judgeDebtLocked(p, waited, unpaced)
		j.judgeRateLocked(p, unpaced)
		if p.passed.IsZero() && !unpaced && !stuck && (p.start == nil || len(p.start.running) == 0) {
			j.judgeOrderLocked(p, p.asked)
		}
		j.judgeRunningLocked(p, unpaced)
		p.start = s
	}
	s.processes++
	s.latest = now
	p.arrived, p.passed, p.refused, p.failedStart = time.Time{}, time.Time{}, time.Time{}, false
	program := j.shape.Program(p.shape.Object(), container, p.runs[container]-1)
	s.initEnds = time.Time{}
	if !isApp(container) {
		if program.Exits > 0 {
			s.initEnds = now.Add(program.Exits)
		}
		return
	}
	if exits := now.Add(program.Exits); program.Exits > 0 && (s.exits.IsZero() || exits.Before(s.exits)) {
		s.exits = exits
	}
	if s.running[container] = true; len(s.running) == p.shape.Containers {
		s.allRunning = now
	}
}

// appOfStuckLocked reports whether a container is the app of a start that is stuck, which is a start of its own.
func (j *judge) appOfStuckLocked(p *podSeen, container string, now time.Time) bool {
	s := p.start
	return p.under() && isApp(container) && len(s.running) == 0 &&
		now.Sub(s.began) > j.most(s.admitted, shapes.Limits.EffectiveStartTimeout)+time.Second
}

// loansLocked notes when every start that holds a slot stalls: then slots may be lent.
func (j *judge) loansLocked(now time.Time) {
	holding := 0
	for _, q := range j.pods {
		switch {
		case j.surely(q, now):
			if holding++; !q.stalls(now) {
				return
			}
		case q.preparing && q.takesSlotWithSandbox(): // it pulls its images
			holding++
		}
	}
	if holding > 0 {
		j.lent = now
	}
}

// judgeLimitLocked judges whether a start may begin beside those that are under way, and reports whether it may have got
// a lent slot.
func (j *judge) judgeLimitLocked(p *podSeen, arrived time.Time, unpaced bool) (lent bool) {
	now := time.Now()
	j.inferLocked(now)
	j.loansLocked(now)
	others, stalled, inferred, first := 0, 0, 0, now
	for _, q := range j.pods {
		if q != p && q.under() && q.start.inferred {
			if inferred++; q.stalls(now) && j.maybe(q, now) {
				stalled++ // it may be over, or lend its slot
			}
		}
		if q != p && j.surely(q, now) {
			others++
			if q.stalls(now) {
				stalled++
			}
			if q.start.admitted.Before(first) {
				first = q.start.admitted
			}
		}
	}
	limit := j.mostAtATime(first.Add(-time.Second))
	waited, admitted := now.Sub(arrived), now
	if p.takesSlotWithSandbox() {
		admitted = p.asked // its images come after that
	}
	switch {
	case limit == 0 || others < limit:
		if limit > 0 && others+inferred >= limit {
			j.excepted["Inferred"]++
		}
	case j.lends(now) && (others-stalled < limit || !j.lent.IsZero() && admitted.Sub(j.lent) < loansLast): // a stalled start leaves its slot to other namespaces
		j.excepted["loan"]++
		return true
	case p.shape.Exempt():
		j.excepted["exempt"]++
	case unpaced:
		j.excepted["unpaced"]++
	case (j.overdue(arrived, now) || j.overdueNowLocked(now)) && others <= limit+j.othersLocked(now):
		j.excepted["maxWait"]++
	default:
		j.complainLocked(limitKept, "%s starts after a wait of %s, while %d others hold a slot of %d", p.shape.Name, waited, others, limit)
	}
	return false
}

// lends reports whether the limits let starts lend their slots, or did of late.
func (j *judge) lends(now time.Time) bool {
	return slices.ContainsFunc(j.since(now.Add(-loansLast)), func(l shapes.Limits) bool { return !l.NoLoans })
}

// judgeRateLocked judges the starts since the rate limit is in force: those of the tokens, and as many that have waited for
// maxWait. A pod that takes its slot with its sandbox starts when its images are there, which may be much later.
func (j *judge) judgeRateLocked(p *podSeen, unpaced bool) {
	now, l := time.Now(), j.inForce[len(j.inForce)-1].Limits
	if !j.steadyLocked(now) {
		j.rated = nil
	}
	if l.FillFactor == 0 || !l.Enforced() || unpaced || p.shape.Exempt() || p.takesSlotWithSandbox() || now.Sub(j.inForce[len(j.inForce)-1].since) < time.Second {
		return
	}
	j.rated = append(j.rated, now)
	for i, first := range j.rated {
		n, most := len(j.rated)-i, max(l.Burst, 1)+2+2*int(now.Sub(first)/l.FillFactor)
		if n > most {
			j.complainLocked(rateKept, "%s is the start %d within %s, of %d", p.shape.Name, n, now.Sub(first), most)
			j.rated = nil
			return
		}
	}
}

// judgeRunningLocked judges that a pod of the StartPolicy starts only if it may run beside the others: no deadline and
// no loan exceeds that. A daemon that does not know a pod's labels, or found it running, counts it as far as it can.
func (j *judge) judgeRunningLocked(p *podSeen, unpaced bool) {
	now := time.Now()
	if !p.shape.Grouped || unpaced || !j.informedLocked(now) || !j.inForce[len(j.inForce)-1].Enforced() {
		return
	}
	n := 0
	for _, q := range j.pods {
		if q != p && q.shape.Grouped && q.processes > 0 && q.start != nil && !q.start.unpaced && !q.over && q.deleted.IsZero() {
			n++
		}
	}
	if n >= j.shape.Running {
		j.complainLocked(runningKept, "%s starts, while %d others run of %d", p.shape.Name, n, j.shape.Running)
	}
}

// judgeExemptionLocked judges that a pod is not held that never waits.
func (j *judge) judgeExemptionLocked(p *podSeen) {
	if p.shape.Exempt() && j.steadyLocked(time.Now()) && p.deleted.IsZero() {
		j.complainLocked(exemptStarts, "%s", p.shape.Name)
	}
}

// overdue reports whether a pod that has waited since a time may start over the limit.
func (j *judge) overdue(since, now time.Time) bool {
	return now.Sub(since) >= max(j.least(since, shapes.Limits.EffectiveMaxWait), 30*time.Second)-2*time.Second
}

// overdueNowLocked reports whether a start that began at this very moment may be over the limit, in place of the one that
// is seen after it.
func (j *judge) overdueNowLocked(now time.Time) bool {
	for _, q := range j.pods {
		if q.start != nil && q.start.began.Equal(now) && j.overdue(q.start.arrived, now) {
			return true
		}
	}
	return false
}

// othersLocked returns how many starts are under way that do not keep a pod from starting that has waited for maxWait: exempt
// ones, and those that a daemon found under way, which does not know which of them was over the limit.
func (j *judge) othersLocked(now time.Time) (n int) {
	for _, q := range j.pods {
		if j.maybe(q, now) && (q.shape.Exempt() || q.start != nil && q.start.began.Before(j.switched)) {
			n++
		}
	}
	return n
}

// judgeOrderLocked judges whether a pod that waits in the gate should have been admitted instead of this one, which
// asked last at a time, or left the gate then.
func (j *judge) judgeOrderLocked(p *podSeen, asked time.Time) {
	now := time.Now()
	present := j.since(asked.Add(-time.Second))
	if p.shape.Exempt() || !j.informedLocked(now) || len(present) > 1 || !present[0].Enforced() || j.anyOverdueLocked(now) {
		return
	}
	for _, b := range j.pods {
		if b == p || b.gate.IsZero() || asked.Sub(b.gate) < time.Second || b.shape.Exempt() || !b.deleted.IsZero() {
			continue
		}
		if present[0].AdaptiveMin > 0 && b.shape.Priority == p.shape.Priority && b.repeats() == p.repeats() {
			continue // a start may pass those like it that would have to wait for CPUs
		}
		if j.steady.After(b.arrived) || j.steady.After(p.arrived) || b.arrived.IsZero() || p.arrived.IsZero() {
			continue // a daemon that was restarted knows the places of those in the gate only
		}
		if b.shape.Grouped || p.shape.Grouped {
			continue // the StartPolicy may hold it
		}
		if b.rejected > 0 || p.rejected > 0 {
			continue // who was admitted before another plugin rejected it comes back as a new one
		}
		if !present[0].UnfairNone && b.shape.Namespace != p.shape.Namespace {
			if p.takesSlotWithSandbox() && asked.Before(now) {
				continue // how many started when it got its sandbox is not known any more
			}
			if mine, theirs := j.startsOf(p, now), j.startsOf(b, now); mine > theirs {
				j.disorderLocked(b, fairKept, "%s is admitted with %d starts of its namespace under way, before %s with %d", p.shape.Name, mine, b.shape.Name, theirs)
			}
			continue
		}
		if before(b, p) {
			j.disorderLocked(b, orderKept, "%s (priority %d, arrived %.3f, repeats %d) is admitted before %s (%d, %.3f, %d)",
				p.shape.Name, p.shape.Priority, p.arrived.Sub(j.began).Seconds(), p.repeats(),
				b.shape.Name, b.shape.Priority, b.arrived.Sub(j.began).Seconds(), b.repeats())
		}
	}
}

// disorder is a pod that waited in the gate when another was admitted that it goes before.
type disorder struct {
	at, gate time.Time
	passed   *podSeen
	rule     string
	text     string
}

func (j *judge) disorderLocked(passed *podSeen, rule, format string, args ...any) {
	j.disorders = append(j.disorders, disorder{time.Now(), passed.gate, passed, rule, fmt.Sprintf(format, args...)})
}

// orderLocked complains of the pods that others were admitted before, unless they were admitted at the same moment:
// hooks leave in any order then.
func (j *judge) orderLocked(now time.Time) {
	if len(j.disorders) == 0 || !now.After(j.disorders[0].at) {
		return
	}
	for _, d := range j.disorders {
		if d.passed.gate.Equal(d.gate) {
			j.complainLocked(d.rule, "%s", d.text)
		}
	}
	j.disorders = nil
}

// before reports whether b surely goes before p.
func before(b, p *podSeen) bool {
	switch {
	case b.shape.Priority != p.shape.Priority:
		return b.shape.Priority > p.shape.Priority
	case b.repeats() != p.repeats():
		return b.repeats() < p.repeats()
	}
	return p.arrived.Sub(b.arrived) > time.Second
}

// startsOf returns how many starts of a pod's namespace are under way: of p, who is admitted, at least; of another at most.
func (j *judge) startsOf(p *podSeen, now time.Time) (n int) {
	for _, q := range j.pods {
		if q == p || q.shape.Namespace != p.shape.Namespace {
			continue
		}
		if p.gate.IsZero() && j.surely(q, now) || !p.gate.IsZero() && j.weighs(q, now) {
			n++
		}
	}
	return n
}

// anyOverdueLocked reports whether a pod may have waited for maxWait.
func (j *judge) anyOverdueLocked(now time.Time) bool {
	for _, q := range j.pods {
		if !q.arrived.IsZero() && j.overdue(q.arrived, now) {
			return true
		}
	}
	return false
}

// lookEvery is how often the judge looks whether a slot is free.
const lookEvery = 500 * time.Millisecond

// watch judges, until stop is closed, whether pods are held while slots are free.
func (j *judge) watch(stop <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			j.look(time.Now())
		}
	}
}

// loansLast is how long slots may be lent after a start has stalled.
const loansLast = 40 * time.Second

// heldMost is how long a pod may be held while a slot is free.
const heldMost = 3 * time.Second

func (j *judge) look(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.orderLocked(now)
	j.connectionLocked(now)
	j.inferLocked(now)
	j.deletedLocked(now)
	j.loansLocked(now)
	free := j.slotsFreeLocked(now)
	if free == 0 {
		j.free = time.Time{}
		return
	}
	if j.free.IsZero() {
		j.free = now
	}
	for _, uid := range j.names {
		p := j.pods[uid]
		if !p.gate.IsZero() && !p.shape.Grouped && now.Sub(p.gate) > heldMost && now.Sub(j.free) > heldMost {
			j.complainLocked(noneHeldIdle, "%s waits in the gate since %s, and a slot is free since %s", p.shape.Name, now.Sub(p.gate), now.Sub(j.free))
			j.free = time.Time{} // one complaint is enough
			return
		}
	}
	j.roomLocked(now, free)
}

// heldInRoom is how long a pod may be held in the waiting room while a slot is free: the daemon first learns of the pod, and
// decides once a second.
const heldInRoom = 6 * time.Second

// roomLocked judges that no pod is held in the waiting room while more slots are free than pods are between the room and the
// gate, or come back within seconds, for which they may be kept.
func (j *judge) roomLocked(now time.Time, free int) {
	var held *podSeen
	for _, uid := range j.names {
		p := j.pods[uid]
		switch {
		case !p.room.IsZero():
			if !p.shape.Grouped && now.Sub(p.room) > heldInRoom && now.Sub(j.free) > heldInRoom {
				held = p
			}
		case p.preparing, !p.arrived.IsZero() && p.gate.IsZero() && now.Sub(p.tried) < cameBack:
			free--
		}
	}
	if held != nil && free > 0 {
		j.complainLocked(noneHeldIdle, "%s waits in the room since %s, and a slot is free since %s", held.shape.Name, now.Sub(held.room), now.Sub(j.free))
		j.free = time.Time{}
	}
}

// judgeTurnLocked judges that a pod which left the waiting room for its sandbox gets it: it has a slot, or a place in
// the gate.
func (j *judge) judgeTurnLocked(p *podSeen, what runtimetest.Happening) {
	if what == runtimetest.SandboxRefused && !p.left.IsZero() && p.deleted.IsZero() && j.informedLocked(p.left) && j.informedLocked(time.Now()) && len(j.since(p.left)) == 1 {
		j.complainLocked(turnKept, "%s is refused, after %s in the room", p.shape.Name, time.Since(p.left))
	}
}

// judgeSpanLocked judges how long all starts took together, where only slots and a rate hold them and nothing goes
// wrong: at most a fifth more than if a pod had been there for each slot that became free, and each token. That counts
// from the last pod's arrival, and the longest start may be the last.
func (j *judge) judgeSpanLocked() {
	s, l := j.shape, j.shape.Limits
	if len(s.Faults) > 0 || s.Running > 0 || s.Containerd != "" || s.Standalone || !l.Enforced() || l.AdaptiveMin > 0 || l.Most > 0 {
		return
	}
	var sum, longest, arrived, done time.Duration
	for _, uid := range j.names {
		p := j.pods[uid]
		if p.shape.Fails() > 0 || p.shape.Rejected > 0 || p.shape.Deleted > 0 || p.start == nil || p.start.ended.IsZero() {
			return
		}
		work := time.Duration(len(p.shape.Inits)+2)*time.Second + p.shape.Work()
		switch {
		case p.takesSlotWithSandbox():
			work += p.shape.Pull
		case !p.shape.TellsReady():
			work += l.EffectiveSettleTime() - p.shape.Ready
		case p.shape.Startup != nil:
			work += p.shape.Startup.Period
		}
		work = min(work, l.EffectiveStartTimeout())
		sum += work
		longest, arrived = max(longest, work+p.shape.Pull), max(arrived, p.shape.At)
		done = max(done, min(p.start.ended.Sub(p.start.began), l.EffectiveStartTimeout())+p.start.began.Sub(j.began))
	}
	if s.Room && s.RoomTimeout() > done && longest < time.Duration(l.Concurrent-1)*l.FillFactor {
		j.judgeTokensLocked()
	}
	sum = sum/time.Duration(l.Concurrent) + time.Duration(len(j.names))*l.FillFactor
	if most := arrived + sum*6/5 + longest + cameBack; done > most {
		j.complainLocked(noSlotIdle, "%d pods have started after %s, of %s", len(j.names), done, most)
	}
}

// judgeTokensLocked judges, where nothing but a rate holds pods, that no token waits for a pod of the waiting room that
// is let out in time to pull its images.
func (j *judge) judgeTokensLocked() {
	const prepares, late = 18 * time.Second, time.Second
	pods := slices.SortedFunc(maps.Values(j.pods), func(a, b *podSeen) int { return a.start.began.Compare(b.start.began) })
	for i, p := range pods {
		if p.shape.Pull > prepares || p.takesSlotWithSandbox() || p.shape.Exempt() {
			return
		}
		if i == 0 {
			continue
		}
		token := pods[i-1].start.began.Add(j.shape.Limits.FillFactor)
		if waits := p.start.began.Sub(token); waits > late && token.Sub(p.start.arrived) > prepares+3*time.Second {
			j.complainLocked(noSlotIdle, "%s starts %s after there was a token for it", p.shape.Name, waits)
		}
	}
}

// deletedLocked judges that no deleted pod waits in the gate or the waiting room.
func (j *judge) deletedLocked(now time.Time) {
	if !j.informedLocked(now) {
		return
	}
	for _, p := range j.pods {
		waits := p.gate
		if waits.IsZero() {
			waits = p.room
		}
		if !waits.IsZero() && !p.deleted.IsZero() && now.Sub(p.deleted) > heldMost && now.Sub(waits) > heldMost {
			j.complainLocked(deletedLeaves, "%s still waits %s after its deletion", p.shape.Name, now.Sub(p.deleted))
			p.deleted = now // one complaint is enough
		}
	}
}

// slotsFreeLocked returns how many slots are surely free, if nothing but slots holds pods.
func (j *judge) slotsFreeLocked(now time.Time) int {
	l := j.inForce[len(j.inForce)-1].Limits
	if !j.informedLocked(now) || l.FillFactor > 0 || !j.signalOpenLocked(now) {
		return 0
	}
	free := l.AtLeast()
	if !l.Enforced() {
		free = len(j.pods) + 1
	}
	for _, p := range j.pods {
		if j.maybe(p, now) {
			free--
		}
	}
	return max(0, free)
}

// cameBack is the time after which every refused pod has come back, and one of them has the free slot.
const cameBack = 25 * time.Second

// judgeRefusalLocked judges a refusal: with a free slot, the pod should have got it, unless it may be kept for others that
// prepare or come back.
func (j *judge) judgeRefusalLocked(p *podSeen) {
	now := time.Now()
	if j.slotsFreeLocked(now) == 0 || j.free.IsZero() || now.Sub(j.free) < heldMost || !p.deleted.IsZero() || p.shape.Exempt() || p.shape.Grouped {
		return
	}
	held, prepare := 0, false
	for _, q := range j.pods {
		prepare = prepare || q != p && q.preparing
		if q != p && (q.preparing || !q.arrived.IsZero() || j.maybe(q, now)) {
			held++
		}
	}
	if since := now.Sub(j.free); !prepare && since > cameBack && !p.under() {
		j.complainLocked(noneHeldIdle, "%s is refused although a slot is free since %s, and no pod prepares", p.shape.Name, since)
	}
	if limit := j.inForce[len(j.inForce)-1]; held < limit.AtLeast() {
		j.complainLocked(noneHeldIdle, "%s is refused although %d pods start or come, of %d, since %s", p.shape.Name, held, limit.AtLeast(), now.Sub(j.free))
	}
}
