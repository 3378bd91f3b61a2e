package plugin

import (
	"slices"
	"sync"
	"time"
)

// What the daemon's own handlers may cost the runtime, which holds two global
// locks through each of them.
const (
	// handlerLatency bounds the 99th percentile of a handler's own time: a tenth
	// of the time after which the runtime closes the connection by default.
	handlerLatency = 200 * time.Millisecond
	// handlerShare bounds the share of wall time that is spent in handlers, holds
	// left out, which have a share of their own.
	handlerShare = 0.2
	// handlerWindow is the time over which both are measured.
	handlerWindow = 30 * time.Second
	// handlerCalls is how many calls are remembered, handlerFewest how many it
	// takes to judge: one slow moment says nothing.
	handlerCalls, handlerFewest = 1024, 20
	// graceBetween is how long one way of waiting has been given up before the
	// next one is; quietBefore is how long the budget has to be kept before one is
	// taken up again.
	graceBetween, quietBefore = 10 * time.Second, time.Minute
)

// budgetStage says which ways of waiting the handlers' budget leaves.
type budgetStage int

const (
	// budgetKept: all of them.
	budgetKept budgetStage = iota
	// holdsStopped: no handler waits any more.
	holdsStopped
	// refusalsStopped: nor is anything refused, for a refusal makes more calls.
	// What cannot wait in the gate starts unpaced. Only a container that a bound of
	// running pods holds is refused: nothing may pass that, and to refuse one every
	// 10 to 15 seconds takes no more calls than to make it anew at each deadline of the gate.
	refusalsStopped
)

func (s budgetStage) String() string {
	return [...]string{"kept", "holds stopped", "holds and refusals stopped"}[s]
}

// handled is one call of a handler.
type handled struct {
	end       time.Time
	own, held time.Duration
}

// handlerBudget measures the handlers, and is the circuit breaker between them and
// the runtime. While the budget is broken, holds stop and, if that does not help,
// refusals; each is taken up again, the last one first, after a quiet time. The
// gate stays: whoever waits there costs the runtime nothing. Made by
// newHandlerBudget; safe for concurrent use.
type handlerBudget struct {
	mu       sync.Mutex
	calls    []handled // a ring
	next     int
	stage    budgetStage
	since    time.Time // when stage changed last; calls before it say nothing about it
	breached time.Time // when the budget was broken last, or stage fell
	judged   time.Time
	use      handlerUse
	changed  chan struct{} // holds at most one
}

// handlerUse is what the handlers took over the last window.
type handlerUse struct {
	p99   time.Duration // of a handler's own time
	share float64       // of wall time, holds left out
	calls int
}

func (u handlerUse) over() bool {
	return u.calls >= handlerFewest && (u.p99 > handlerLatency || u.share > handlerShare)
}

func newHandlerBudget() *handlerBudget { return &handlerBudget{changed: make(chan struct{}, 1)} }

// add takes note of one call that ended at end.
func (b *handlerBudget) add(end time.Time, own, held time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	call := handled{end: end, own: max(0, own), held: held}
	if len(b.calls) < handlerCalls {
		b.calls = append(b.calls, call)
	} else {
		b.calls[b.next] = call
		b.next = (b.next + 1) % handlerCalls
	}
	// A second is soon enough for a breaker, and spares each call the sorting.
	if end.Sub(b.judged) >= time.Second || end.Before(b.judged) {
		b.judgeLocked(end)
	}
}

// judge gives the stage and the use at now, and the time at which to ask again
// though no handler is called; zero: no need to.
func (b *handlerBudget) judge(now time.Time) (budgetStage, handlerUse, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judgeLocked(now)
	var again time.Time
	if b.stage != budgetKept {
		again = now.Add(max(time.Second, b.breached.Add(quietBefore).Sub(now)))
	}
	return b.stage, b.use, again
}

// allows tells whether the stage leaves that way of waiting: one that stops at the
// given stage.
func (b *handlerBudget) allows(stops budgetStage) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stage < stops
}

func (b *handlerBudget) judgeLocked(now time.Time) {
	b.judged = now
	b.use = b.useLocked(now)
	switch {
	case b.use.over():
		b.breached = now
		if b.stage == budgetKept || (b.stage < refusalsStopped && now.Sub(b.since) >= graceBetween) {
			b.turnLocked(now, b.stage+1)
		}
	case b.stage > budgetKept && now.Sub(b.breached) >= quietBefore:
		b.turnLocked(now, b.stage-1)
	}
}

func (b *handlerBudget) turnLocked(now time.Time, to budgetStage) {
	b.stage, b.since, b.breached = to, now, now
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// useLocked measures the calls of the last window, as far as they were made in the
// present stage.
func (b *handlerBudget) useLocked(now time.Time) handlerUse {
	from := now.Add(-handlerWindow)
	if b.since.After(from) {
		from = b.since
	}
	var own []time.Duration
	var sum time.Duration
	first := now
	for _, c := range b.calls {
		if !c.end.After(from) || c.end.After(now) {
			continue
		}
		own = append(own, c.own)
		sum += c.own
		if began := c.end.Add(-c.own - c.held); began.Before(first) {
			first = began
		}
	}
	if len(own) == 0 {
		return handlerUse{}
	}
	span := handlerWindow
	if len(b.calls) == handlerCalls || b.since.After(now.Add(-handlerWindow)) {
		span = now.Sub(first) // what is remembered is less than a window
	}
	slices.Sort(own)
	return handlerUse{
		p99: own[(len(own)-1)*99/100], calls: len(own),
		share: float64(sum) / float64(max(span, time.Second)),
	}
}
