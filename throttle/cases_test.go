package throttle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

var epoch = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// play lets pods wait and start, second by second, through the public API alone.
type play struct {
	t    *testing.T
	l    *throttle.Limiter
	now  time.Time
	took map[string]time.Duration // how long the starts take, by the prefix of their names; zero: they never end
	// began is when each start was admitted.
	began map[string]time.Duration
	ends  map[time.Duration][]*throttle.Ticket
}

func newPlay(t *testing.T, s throttle.Settings, took map[string]time.Duration) *play {
	t.Helper()
	return &play{
		t: t, l: throttle.New(epoch, s), now: epoch, took: took,
		began: map[string]time.Duration{}, ends: map[time.Duration][]*throttle.Ticket{},
	}
}

// joinWaiting lets a pod join, with a process that waits. The part of its name before the hyphen is its namespace.
func (p *play) joinWaiting(name string, r throttle.Request) *throttle.Ticket {
	namespace, _, _ := strings.Cut(name, "-")
	r.UID, r.Flow = name, namespace
	ticket := p.l.Join(p.now, r)
	ticket.Wait(p.now)
	p.look()
	return ticket
}

// pass lets time go by.
func (p *play) pass(d time.Duration) {
	for end := p.now.Add(d); p.now.Before(end); {
		p.now = p.now.Add(time.Second)
		for _, ticket := range p.ends[p.now.Sub(epoch)] {
			ticket.End(p.now, reasons.Ready)
		}
		p.l.Advance(p.now)
		p.look()
	}
}

func (p *play) look() {
	for _, e := range p.l.Drain() {
		if e.State != throttle.Starting {
			continue
		}
		at := p.now.Sub(epoch)
		p.began[e.Ticket.UID()] = at
		namespace, _, _ := strings.Cut(e.Ticket.UID(), "-")
		if took := p.took[namespace]; took > 0 {
			p.ends[at+took] = append(p.ends[at+took], e.Ticket)
		}
	}
}

// admitted counts the admitted pods of a namespace.
func (p *play) admitted(namespace string) (n int) {
	for name := range p.began {
		if strings.HasPrefix(name, namespace+"-") {
			n++
		}
	}
	return n
}

// What tenants can do to each other. The comments say what was measured before a bound existed.
func TestCasesOfAbuse(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*testing.T){
		"short deadlines before high priorities": shortDeadlines, // before: 0 of 20 after 540 s, 161 of the others
		"one start of sixteen hangs":             oneHangs,       // before: room for 2 of 60, 25 min expected
		"a node busy before the herd":            busyBefore,     // before: a limit of 31, the whole herd at once
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); play(t) })
	}
}

func shortDeadlines(t *testing.T) {
	p := newPlay(t, throttle.Settings{MaxConcurrent: 2}, map[string]time.Duration{"high": 10 * time.Second, "short": 10 * time.Second})
	for i := range 20 {
		p.joinWaiting(fmt.Sprintf("high-%02d", i), throttle.Request{Priority: 1000})
	}
	for i := range 180 {
		p.joinWaiting(fmt.Sprintf("short-%03d", i), throttle.Request{MaxWait: 6 * time.Second}) // activeDeadlineSeconds: 60
		p.pass(3 * time.Second)
		if high, short := p.admitted("high"), p.admitted("short"); high < 20 {
			require.LessOrEqual(t, short, high+1, "the high priorities lose at most every second slot")
		}
	}
	t.Logf("after %s: %d of 20, %d of the others", p.now.Sub(epoch), p.admitted("high"), p.admitted("short"))
	require.Equal(t, 20, p.admitted("high"))
}

func oneHangs(t *testing.T) {
	p := newPlay(t, throttle.Settings{MaxConcurrent: 16, StartTimeout: time.Hour}, map[string]time.Duration{"works": 4 * time.Second})
	p.joinWaiting("hangs-0", throttle.Request{})
	for i := range 1500 {
		p.joinWaiting(fmt.Sprintf("works-%04d", i), throttle.Request{})
	}
	p.pass(400 * time.Second)
	for i := range 60 {
		p.l.Join(p.now, throttle.Request{UID: fmt.Sprintf("new-%02d", i), Flow: "new"})
	}
	for len(p.l.Snapshot(p.now).Starting) < 16 {
		p.joinWaiting(fmt.Sprintf("works-more-%02d", len(p.began)), throttle.Request{})
	}
	room := 0
	for i := range 60 {
		if p.l.Lookup(fmt.Sprintf("new-%02d", i)).Reserve(p.now, 100*time.Second, throttle.RetriedSoon).Granted {
			room++
		}
	}
	last := p.l.Snapshot(p.now).Waiting[59]
	t.Logf("room for %d of 60, the last is expected in %s", room, last.WaitLeft)
	require.GreaterOrEqual(t, room, 16)
	require.InDelta(t, 16, last.WaitLeft.Seconds(), 8)
}

func busyBefore(t *testing.T) {
	p := newPlay(t, throttle.Settings{Adaptive: &adaptive.Settings{Cores: 2}, StartTimeout: time.Hour}, map[string]time.Duration{"first": 3 * time.Second})
	busy := func(seconds int) {
		for range seconds {
			p.pass(time.Second)
			var s throttle.Signals
			s[throttle.SignalCPU] = throttle.Reading{Value: 100, From: p.now.Add(-2 * time.Second), To: p.now}
			queued := min(100, 50*float64(len(p.l.Snapshot(p.now).Starting))) // each start waits for one of two busy CPUs
			s[throttle.SignalCPUPressure] = throttle.Reading{Value: queued, From: p.now.Add(-2 * time.Second), To: p.now}
			s[throttle.SignalIOPressure] = throttle.Reading{From: p.now.Add(-2 * time.Second), To: p.now}
			p.l.Observe(p.now, s)
			p.look()
		}
	}
	busy(60)
	for i := range 2 {
		p.joinWaiting(fmt.Sprintf("first-%d", i), throttle.Request{})
	}
	for i := range 30 {
		p.joinWaiting(fmt.Sprintf("herd-%02d", i), throttle.Request{})
	}
	most := 0
	for range 20 {
		busy(1)
		most = max(most, p.l.Snapshot(p.now).Limit)
	}
	t.Logf("limit %d, %d of the herd at once: %s", most, p.admitted("herd"), p.l.Snapshot(p.now).Adaptive)
	require.Equal(t, 2, p.admitted("first"), "two starts have ended")
	require.LessOrEqual(t, most, 4)
}
