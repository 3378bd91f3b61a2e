package plugin

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// asksEvery is how often the daemon is asked, at most.
const asksEvery = 20 * time.Second

// saidWithin is how long the daemon may take until it says what the judge saw.
const saidWithin = 5 * time.Second

// goneWithin is how long a pod may wait by the status that came and was deleted while the API server was away.
const goneWithin = 2 * time.Minute

// asks compares what the daemon says of its pods with what was seen, at most every asksEvery.
func (b *bubble) asks() {
	now := time.Now()
	if b.d == nil || now.Sub(b.asked) < asksEvery {
		return
	}
	b.asked = now
	status := b.d.podStatus(now, b.d.starts.Snapshot(now))
	b.seen.judgeStatus(now, status)
	if gate, room := b.d.waiting.Gate.Waiters(), len(b.d.waiting.Room.Pods()); gate+room > 0 {
		b.seen.judgeWaiters(now, gate, room)
	}
}

// judgeStatus judges that who waits in the gate or in the room waits by the status, and by the answer to why; that who surely
// has a slot has one, that nobody else has one, and that no pod waits that is gone.
func (j *judge) judgeStatus(now time.Time, s admin.Status) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if past := j.since(now.Add(-time.Minute)); !j.informedLocked(now) || len(past) > 1 || !past[0].Enforced() {
		return
	}
	says := func(p *podSeen, state throttle.State) {
		why, err := s.Why(p.shape.Namespace, p.shape.Name)
		if state == throttle.Waiting && now.Sub(why.Admitted) < saidWithin {
			return // its hook is about to leave
		}
		if err != nil || why.State != state || state == throttle.Waiting && (why.Place == 0 || why.Of < why.Place) {
			j.complainLocked(saysSame, "%s: %s is seen, but why says %v, place %d of %d (%v)", p.shape.Name, state, why.State, why.Place, why.Of, err)
		}
	}
	for _, uid := range j.names {
		switch p := j.pods[uid]; {
		case p.shape.Exempt() || !p.deleted.IsZero():
		case !p.gate.IsZero() && now.Sub(p.gate) > saidWithin, !p.room.IsZero() && now.Sub(p.room) > saidWithin:
			says(p, throttle.Waiting)
		case j.surely(p, now) && now.Sub(p.start.began) > saidWithin && p.refused.IsZero(): // else a lent slot has lapsed
			says(p, throttle.Starting)
		}
	}
	for _, one := range s.Starting {
		p := j.pods[types.UID(one.UID)]
		if one.Slot && p.gate.IsZero() && p.room.IsZero() && p.rejected == 0 && now.Sub(p.tried) > saidWithin && !j.maybe(p, now) {
			j.complainLocked(saysSame, "%s has a slot by the status, since %s", p.shape.Name, now.Sub(one.Admitted))
		}
	}
	for _, one := range s.Waiting {
		if p := j.pods[types.UID(one.UID)]; p.removed && now.Sub(p.deleted) > goneWithin && now.Sub(j.sees) > goneWithin {
			j.complainLocked(saysSame, "%s waits by the status, %s after its deletion", p.shape.Name, now.Sub(p.deleted))
		}
	}
}

// judgeWaiters judges how many hooks and pods wait, by the daemon.
func (j *judge) judgeWaiters(now time.Time, gate, room int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	gates, rooms, moves := 0, 0, false
	for _, p := range j.pods {
		gates += int(oneIf(!p.gate.IsZero()))
		rooms += int(oneIf(!p.room.IsZero()))
		moves = moves || now.Sub(p.tried) < saidWithin || p.start != nil && now.Sub(p.start.latest) < saidWithin
	}
	if !moves && j.informedLocked(now) && (gate != gates || room != rooms) {
		j.complainLocked(saysSame, "%d wait in the gate and %d in the room, by the daemon %d and %d", gates, rooms, gate, room)
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// writes sees what the daemon writes to the API server.
func (j *judge) writes(a clienttesting.Action) {
	if slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.written++
}

// tells sees an event that the daemon writes.
func (j *judge) tells(e *corev1.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p := j.pods[e.InvolvedObject.UID]; p != nil {
		p.events++
	}
}

// judgeWritesLocked judges how much the daemon has written: to the API server one object in five seconds, on a pod two events
// for each start, and one for each minute.
func (j *judge) judgeWritesLocked() {
	lived := time.Since(j.began)
	if most := 30 + 10*len(j.inForce) + 10*len(j.shape.Faults) + int(lived/(5*time.Second)); j.written > most {
		j.complainLocked(writesLittle, "%d objects in %s, of %d", j.written, lived, most)
	}
	for _, uid := range j.names {
		p := j.pods[uid]
		if most := 3 + 3*p.processes + int((lived - p.shape.At).Minutes()); p.events > most {
			j.complainLocked(writesLittle, "%d events on %s, of %d", p.events, p.shape.Name, most)
		}
	}
}
