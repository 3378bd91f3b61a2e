package nri

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"
)

// Pauses after a registration that the runtime gave up soon: each costs every pod of the
// node up to two of the runtime's request timeouts, one to synchronize and one to notice.
const (
	weakFirst  = 5 * time.Second
	weakGrowth = 10
	weakMost   = 5 * time.Minute
	// weakSoon is how long a connection has to last, and longer than the last pause, with
	// no late answer at its end, for that end to be none of the daemon's weakness.
	weakSoon = time.Minute
	// stillEvery is the time between two looks whether the daemon stood still.
	stillEvery = time.Second
)

// life is how far a connection to the runtime came.
type life struct {
	registered, synchronized bool
	lasted                   time.Duration // since it was registered
	late                     int           // answers that were late, one soon after the other, the last soon before its end
	socket                   os.FileInfo   // where the runtime listened; nil: nowhere
}

// weakness tells a daemon that cannot keep up with the runtime to stay away from it for a
// while. The zero value is ready for use.
type weakness struct {
	first time.Duration // for tests; 0: weakFirst
	pause time.Duration // the last one; 0: the daemon keeps up
}

// after returns the pause, before jitter, that the end of a connection asks for; 0: none.
// Each late answer has cost a request timeout, and counts: a runtime that keeps the plugin
// after the first, see newStub, has waited for two.
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

// rest waits for the pause, or until ctx ends or another runtime listens than at the given
// socket: one that was restarted has given up no plugin.
func (c *Connection) rest(ctx context.Context, pause time.Duration, socket os.FileInfo) {
	over, look := time.After(pause), time.Tick(knockEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-look:
		}
		if socket != nil && !sameSocket(socket, socketOf(c.options.Socket)) {
			c.weakness.pause = 0
			return
		}
	}
}

// socketOf returns the socket at the path; nil: there is none.
func socketOf(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

// sameSocket reports whether both are of one listener: who listens anew makes a new file.
func sameSocket(a, b os.FileInfo) bool {
	return b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}

// lateAnswers counts the answers for which the runtime waited for its request timeout, of
// one connection. A runtime that keeps the plugin then, see newStub, would wait as
// long for each of the next ones. Made by newLateAnswers; safe for concurrent use.
type lateAnswers struct {
	timeout func() time.Duration // the runtime's; 0: not known yet
	again   chan struct{}        // holds at most one: a second answer was late, soon after the first

	mu    sync.Mutex
	last  time.Time
	count int // of answers that were late, each soon after the one before
}

func newLateAnswers(timeout func() time.Duration) *lateAnswers {
	return &lateAnswers{timeout: timeout, again: make(chan struct{}, 1)}
}

// took takes note of an answer at now, or of a time for which the whole daemon stood still.
// Of several that were late at the same time one counts.
func (l *lateAnswers) took(now time.Time, d time.Duration) {
	if most := l.timeout(); most <= 0 || d < most {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Add(-d).Before(l.last) {
		return
	}
	l.count = l.lateLocked(now) + 1
	l.last = now
	if l.count > 1 {
		select {
		case l.again <- struct{}{}:
		default:
		}
	}
}

// late returns how many answers were late, each soon after the one before, the last soon before now.
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
