package nri

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// weakFirst, weakGrowth and weakMost are the pauses after connections that were too slow: each costs every pod of the
	// node up to two of the runtime's request timeouts, one to synchronize and one until the runtime gives up.
	weakFirst  = 5 * time.Second
	weakGrowth = 10
	weakMost   = 5 * time.Minute
	// weakSoon is how long a connection has to last, and longer than the last pause, so that its end does not count as
	// weakness. Late answers older than this do not count either.
	weakSoon = time.Minute
	// stillEvery is the time between two checks whether the daemon stood still, or a handler does.
	stillEvery = time.Second
	// lateMost is how long an answer may take whatever the runtime allows: each holds up all pods of the node.
	lateMost = 5 * time.Second
)

// life is how a connection to the runtime went.
type life struct {
	registered, synchronized bool
	lasted                   time.Duration // since it was registered
	late                     int           // late answers, each within weakSoon of the next and the last of the end
	socket                   string        // its socketID
}

// weakness computes how long a daemon that is too slow for the runtime stays away from it. The zero value is ready for
// use.
type weakness struct {
	first time.Duration // for tests; 0 means weakFirst
	pause time.Duration // the last one; 0 if the daemon is fast enough
}

// after returns the pause, before jitter, after the end of a connection, or 0 for none. Each late answer has cost a
// request timeout, so the pause grows with each.
func (w *weakness) after(l life) time.Duration {
	if !l.registered {
		return 0
	}
	if l.synchronized && l.lasted >= max(weakSoon, w.pause) {
		w.pause = 0
		if l.late == 0 {
			return 0
		}
	}
	for range max(1, l.late) {
		w.pause = cmp.Or(min(weakGrowth*w.pause, weakMost), w.first, weakFirst)
	}
	return w.pause
}

// rest blocks for the pause, or until ctx ends. It returns early when another runtime than the one with this socket, as
// socketID names it, listens: a runtime that was restarted does not remember slow answers.
func (c *Connection) rest(ctx context.Context, pause time.Duration, socket string) {
	_ = wait.PollUntilContextTimeout(ctx, knockEvery, pause, false, func(context.Context) (another bool, _ error) {
		another = socket != "" && socket != socketID(c.options.Socket)
		if another {
			c.weakness.pause = 0
		}
		return another, nil
	})
}

// lateAnswers counts the late answers of one connection: those for which the runtime waited as long as its request
// timeout, and those that are not there after that time. Create it with newLateAnswers. It is safe for concurrent use.
type lateAnswers struct {
	timeout func() time.Duration // what is late; 0 if it is not known yet
	again   chan struct{}        // receives when an answer was late soon after another; holds one at most

	mu    sync.Mutex
	last  time.Time
	count int               // late answers, each soon after the one before
	calls map[int]time.Time // when each call that is under way began
	began int               // calls so far
}

func newLateAnswers(timeout func() time.Duration) *lateAnswers {
	return &lateAnswers{timeout: timeout, again: make(chan struct{}, 1), calls: map[int]time.Time{}}
}

// begins notes a call of the runtime that begins at now, and returns its number for ends.
func (l *lateAnswers) begins(now time.Time) (call int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began++
	l.calls[l.began] = now
	return l.began
}

// ends notes that a call ends at now, and counts its answer if that is late.
func (l *lateAnswers) ends(call int, now time.Time) {
	l.mu.Lock()
	began := l.calls[call]
	delete(l.calls, call)
	l.mu.Unlock()
	l.took(now, now.Sub(began))
}

// look counts the calls whose answers are late at now. A handler that never returns has no other end: a runtime that
// keeps the connection waits for each of its answers in vain.
func (l *lateAnswers) look(now time.Time) {
	most := l.timeout()
	if most <= 0 {
		return
	}
	l.mu.Lock()
	begins := slices.SortedFunc(maps.Values(l.calls), time.Time.Compare)
	l.mu.Unlock()
	for _, begin := range begins {
		if due := begin.Add(most); !now.Before(due) {
			l.took(due, most)
		}
	}
}

// took counts an answer that was given at now and took d, if it was late.
func (l *lateAnswers) took(now time.Time, d time.Duration) {
	if l.counts(now, d) && l.late(now) > 1 {
		select {
		case l.again <- struct{}{}:
		default:
		}
	}
}

// counts counts an answer that was given at now and took d, if it was late, and reports whether it did. A time for which
// the whole daemon stood still counts like an answer, so that one late answer soon after it ends the connection. Of answers
// that were late at the same time, one counts.
func (l *lateAnswers) counts(now time.Time, d time.Duration) bool {
	most := l.timeout()
	l.mu.Lock()
	defer l.mu.Unlock()
	if most <= 0 || d < most || now.Add(-d).Before(l.last) {
		return false
	}
	l.count, l.last = l.lateLocked(now)+1, now
	return true
}

// late returns the number of late answers, each soon after the one before, and the last soon before now.
func (l *lateAnswers) late(now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lateLocked(now)
}

func (l *lateAnswers) lateLocked(now time.Time) int {
	if now.Sub(l.last) >= weakSoon {
		return 0
	}
	return l.count
}
