package throttle

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
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
	mu sync.Mutex
	// What is set, and what it makes of the starts.
	settings Settings
	limits   []limit
	slots    slots
	bucket   *rate.Limiter        // kept while there is no such limit; nil: there never was
	adaptive *adaptive.Controller // nil: off
	learned  learned
	signals  Signals
	// Who waits and starts.
	tickets map[string]*Ticket // by UID; the latest ticket of the pod
	sets
	policies map[string]*limits  // by name
	groups   map[GroupKey]*group // of any policy, also one that is not there
	members  map[string]*member  // by UID; those that have a part in any group
	counting uint64              // how often was counted who comes before a ticket
	seq      uint64
	latest   time.Time // the time of the latest decision
	crowded  time.Time // since when somebody waits all the time
	came     time.Time // when a Waiting ticket was asked for last; zero: none was
	ended    []*Ticket // in the order of their ends, at most endedKept
	// What was granted beside the limits.
	over       *Ticket // the last start over the limit, while it counts as such
	overAll    bool    // over exceeded more than the number of starts at a time
	loan       loan
	passedRoom *Ticket // the last that was let up without room
	// What was observed.
	takes   takes // those that owe
	paced   takes // those that the limits allowed, or a deadline
	history history
	tally   tally
	events  []Event
	lost    uint64

	changed chan struct{}
}

// New gives a limiter with the settings s, no ticket, and a full token bucket.
func New(now time.Time, s Settings) *Limiter {
	l := &Limiter{
		tickets: map[string]*Ticket{}, sets: newSets(), latest: now, changed: make(chan struct{}, 1),
		groups: map[GroupKey]*group{}, members: map[string]*member{},
	}
	l.slots.starting = &l.starting
	l.setLimitsLocked(now, s)
	return l
}

// Configure replaces the settings. Tickets, places, slots, tokens, loans and what
// starts owe are kept: with a lower limit, the starts that are under way go on, and
// no other is admitted until their number is below it.
func (l *Limiter) Configure(now time.Time, s Settings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	l.setLimitsLocked(now, s)
	l.resetDueLocked()
	l.admitLocked(now)
}

// Join gives the ticket of the pod: the one it has while that is Waiting or
// Starting, else a new one at its place in the queue. A Waiting ticket moves to the
// place of an earlier arrival.
func (l *Limiter) Join(now time.Time, r Request) *Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	t := l.tickets[r.UID]
	if t == nil || t.hasEnded() {
		defer l.changedLocked()
		return l.joinLocked(now, r)
	}
	t.seen = now
	l.cameLocked(now, t)
	if arrived := earlier(now, r.Arrived); t.state == Waiting && arrived.Before(t.arrived) {
		defer l.changedLocked()
		l.moveLocked(t, func() { t.arrived = arrived })
	}
	return t
}

// Found is Join for a start that is under way: it was admitted at the given
// time, or slipped through while nobody looked. It holds a slot at once, over
// the limit where reality is, and takes no token. Without a time, or with one to
// come, it began now. A ticket that is Starting already stays as it is.
func (l *Limiter) Found(now time.Time, r Request, since time.Time) *Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	t := l.tickets[r.UID]
	if t == nil || t.hasEnded() {
		t = l.joinLocked(now, r)
	}
	if t.state == Waiting {
		l.startLocked(earlier(now, since), t, Found, true)
	}
	return t
}

// Lookup gives the latest ticket of the pod, also one that ended if it is among the
// last 256 that did, or nil.
func (l *Limiter) Lookup(uid string) *Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tickets[uid]
}

// SetPriority moves a Waiting ticket to the place that the priority gives it,
// and replaces its Request.MaxWait. Nothing happens to a pod that has none.
func (l *Limiter) SetPriority(now time.Time, uid string, priority int32, maxWait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	t := l.tickets[uid]
	if t == nil || t.state != Waiting || (t.priority == priority && t.maxWait == maxWait) {
		return
	}
	defer l.changedLocked()
	l.moveLocked(t, func() { t.priority, t.maxWait = priority, maxWait })
	l.admitLocked(now)
}

// Advance ends the starts and waits whose time is over, admits whoever may start
// by now, and says when it wants to be called next; the zero time: not before
// something else happens. Its time is taken for the clock's: where that was set
// back, everything stays as old as it was.
func (l *Limiter) Advance(now time.Time) (next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setBackLocked(now)
	now = l.clockLocked(now)
	l.endTimedOutLocked(now)
	l.endAbandonedLocked(now)
	l.endLongPullsLocked(now)
	l.admitLocked(now)
	return l.nextLocked(now)
}

func (l *Limiter) joinLocked(now time.Time, r Request) *Ticket {
	l.seq++
	t := &Ticket{
		l: l, uid: r.UID, name: r.Name, seq: l.seq,
		priority: r.Priority, arrived: earlier(now, r.Arrived), maxWait: r.MaxWait,
		repeats: max(0, r.Repeats), state: Waiting, seen: now, decided: make(chan struct{}),
	}
	if !l.crowdLocked() {
		l.crowded = now
	}
	l.tickets[r.UID] = t
	l.joinMemberLocked(t, r.Groups)
	l.classifyLocked(t)
	l.cameLocked(now, t)
	l.joinQueueLocked(t)
	l.happenedLocked(Event{Kind: KindJoined, Time: now}, t)
	return t
}

// earlier gives at where that is before now, else now (at may be zero). The
// result is on the clock of now: times of which only some have a monotonic
// reading have no order when the wall clock is set.
func earlier(now, at time.Time) time.Time {
	if at.IsZero() || !at.Before(now) {
		return now
	}
	return now.Add(at.Sub(now))
}
