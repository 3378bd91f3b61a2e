package throttle

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// abandonAfter is how long a ticket that waits without anybody present is kept.
// kubelet comes back to a refused sandbox or container within 15 seconds, and to
// a container that failed to start within its back-off of 5 minutes at most.
const abandonAfter = 10 * time.Minute

// endedKept is how many ended tickets are remembered for [Limiter.Lookup].
const endedKept = 256

// Limiter is the queue, the slots and the limits of one node. Make one with New.
// All methods are safe for concurrent use and never block.
type Limiter struct {
	mu       sync.Mutex
	settings Settings
	limits   []limit
	bucket   *rate.Limiter
	seq      uint64
	tickets  map[string]*Ticket // by UID; the latest ticket of the pod
	waiting  order              // every Waiting ticket
	present  order              // the Waiting tickets for which somebody stands there
	starting order              // the tickets that hold a slot
	unheld   order              // the Starting tickets without a slot
	over     *Ticket            // the last start over the limit, while it counts as such
	history  history
	ended    []*Ticket // in the order of their ends, at most endedKept
	events   []Event
	lost     uint64

	changed chan struct{}
}

// New gives a limiter with the settings s, no ticket, and a full token bucket.
func New(now time.Time, s Settings) *Limiter {
	l := &Limiter{tickets: map[string]*Ticket{}, changed: make(chan struct{}, 1)}
	l.setLimits(now, s)
	return l
}

// Configure replaces the settings. Tickets, places, slots and tokens are kept:
// with a lower limit, the starts that are under way go on, and no other is
// admitted until their number is below it.
func (l *Limiter) Configure(now time.Time, s Settings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	l.setLimits(now, s)
	l.admitLocked(now)
}

// Join gives the ticket of the pod: the one it has while that is Waiting or
// Starting, else a new one at its place in the queue.
func (l *Limiter) Join(now time.Time, r Request) *Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.tickets[r.UID]; t != nil && (t.state == Waiting || t.state == Starting) {
		t.seen = now
		return t
	}
	defer l.changedLocked()
	return l.joinLocked(now, r)
}

// Found is Join for a start that is under way: it was admitted at the given
// time, or slipped through while nobody looked. It holds a slot at once, over
// the limit where reality is.
func (l *Limiter) Found(now time.Time, r Request, since time.Time) *Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	t := l.tickets[r.UID]
	if t == nil || t.state == Started || t.state == Gone {
		t = l.joinLocked(now, r)
	}
	if t.state == Waiting {
		l.startLocked(since, t, Found, true)
	}
	return t
}

// Lookup gives the latest ticket of the pod, also one that ended a while ago, or
// nil.
func (l *Limiter) Lookup(uid string) *Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tickets[uid]
}

// SetPriority moves a Waiting ticket to the place that the priority gives it.
func (l *Limiter) SetPriority(now time.Time, uid string, priority int32, maxWait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tickets[uid]
	if t == nil || t.state != Waiting {
		return
	}
	t.maxWait = maxWait
	if t.priority == priority {
		return
	}
	defer l.changedLocked()
	l.waiting.remove(t)
	l.present.remove(t)
	t.priority = priority
	l.waiting.insert(t)
	if t.attended > 0 {
		l.present.insert(t)
	}
	l.admitLocked(now)
}

// Advance ends the starts and waits whose time is over, admits whoever may start
// by now, and says when it wants to be called next; the zero time: not before
// something else happens.
func (l *Limiter) Advance(now time.Time) (next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.timedOutLocked(now) {
		l.endLocked(now, t, Stuck)
	}
	for _, t := range l.abandonedLocked(now) {
		l.endLocked(now, t, Abandoned)
	}
	l.admitLocked(now)
	return l.nextLocked(now)
}

func (l *Limiter) joinLocked(now time.Time, r Request) *Ticket {
	l.seq++
	t := &Ticket{
		l: l, uid: r.UID, name: r.Name, seq: l.seq,
		priority: r.Priority, arrived: now, maxWait: r.MaxWait,
		state: Waiting, seen: now, decided: make(chan struct{}),
	}
	if !r.Arrived.IsZero() && r.Arrived.Before(now) {
		t.arrived = r.Arrived
	}
	l.tickets[r.UID] = t
	l.waiting.insert(t)
	l.happenedLocked(Event{Kind: KindJoined, Time: now}, t)
	return t
}

// admitLocked serves those who are present, in order, until a limit refuses;
// then those who have waited for too long.
func (l *Limiter) admitLocked(now time.Time) {
	l.settleOverLocked()
	for t := l.present.first(); t != nil; t = l.present.first() {
		if _, ok := l.checkLocked(now); !ok {
			break
		}
		l.takeLocked(now)
		l.startLocked(now, t, Free, true)
	}
	if t := l.longestLocked(now); t != nil && l.mayPassLimitLocked() {
		l.passLimitLocked(now, t, MaxWait)
	}
}

// startLocked turns a Waiting ticket into a Starting one.
func (l *Limiter) startLocked(at time.Time, t *Ticket, reason Reason, slot bool) {
	l.waiting.remove(t)
	l.present.remove(t)
	t.state, t.reason, t.admitted, t.slot = Starting, reason, at, slot
	if slot {
		l.starting.insert(t)
	} else {
		l.unheld.insert(t)
	}
	close(t.decided)
	l.happenedLocked(Event{Kind: KindAdmitted, Time: at, Reason: reason, Took: max(0, at.Sub(t.arrived))}, t)
}

// endLocked ends a ticket once.
func (l *Limiter) endLocked(now time.Time, t *Ticket, reason Reason) {
	e := Event{Kind: KindEnded, Time: now, Reason: reason}
	switch t.state {
	case Waiting:
		l.waiting.remove(t)
		l.present.remove(t)
		t.state = Gone
		close(t.decided)
	case Starting:
		l.starting.remove(t)
		l.unheld.remove(t)
		t.state = reason.endState()
		e.Took = max(0, now.Sub(t.admitted))
		if t.slot && t.reason != Found && t.state == Started {
			l.history.add(e.Took)
		}
	default:
		return
	}
	t.reason, t.ended = reason, now
	l.rememberLocked(t)
	l.happenedLocked(e, t)
}

// rememberLocked keeps the ended ticket, and forgets the oldest beyond the bound.
func (l *Limiter) rememberLocked(t *Ticket) {
	l.ended = append(l.ended, t)
	for len(l.ended) > endedKept {
		old := l.ended[0]
		l.ended = l.ended[1:]
		if l.tickets[old.uid] == old {
			delete(l.tickets, old.uid)
		}
	}
}

func (l *Limiter) refusalLocked(now time.Time, t *Ticket) Decision {
	d := Decision{Ahead: l.waiting.rank(t)}
	if held, ok := l.checkLocked(now); !ok {
		d.Reason, d.Held = held.Reason, held
	} else {
		d.Reason, d.Held = Queued, Held{Reason: Queued, Measured: float64(l.present.rank(t))}
	}
	return d
}
