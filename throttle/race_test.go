package throttle

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestParallelUse lets many goroutines start pods on the real clock, as the
// gate, the pod watch and the status do at the same time. The limit holds all
// the while, everybody is served, and nothing is left.
func TestParallelUse(t *testing.T) {
	t.Parallel()
	const workers, each, most = 16, 60, 3
	l := New(time.Now(), Settings{MaxConcurrent: most, FillEvery: 20 * time.Microsecond, Burst: 5, NoProgressAfter: time.Hour})
	stopLoop := runLoop(t, l)
	stopReaders := runReaders(l, most)

	var holding, above atomic.Int64
	var joined, ended atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range each {
				ticket := l.Join(time.Now(), Request{UID: fmt.Sprintf("%d-%d", w, i), Priority: rng.Int32N(3)})
				joined.Add(1)
				if !await(l, ticket, rng) {
					ended.Add(1)
					continue
				}
				if n := holding.Add(1); n > most {
					above.Store(max(above.Load(), n))
				}
				runtime.Gosched()
				holding.Add(-1)
				ticket.End(time.Now(), Ready)
				ticket.End(time.Now(), Deleted)
				ended.Add(1)
			}
		})
	}
	wg.Wait()
	stopReaders()
	stopLoop()
	require.LessOrEqual(t, above.Load(), int64(most+1), "starts at a time")
	require.Equal(t, int64(workers*each), joined.Load())
	require.Equal(t, joined.Load(), ended.Load())
	s := l.Snapshot(time.Now())
	require.Empty(t, s.Waiting)
	require.Empty(t, s.Starting)
	require.Zero(t, l.presentLocked())
	require.True(t, l.Advance(time.Now()).IsZero())
}

// await waits for the decision as different callers do; false: it gave up.
func await(l *Limiter, ticket *Ticket, rng *rand.Rand) bool {
	switch rng.IntN(4) {
	case 0: // refused and coming back
		for range 5 {
			if ticket.TryStart(time.Now()).Admitted {
				return true
			}
			runtime.Gosched()
		}
	case 1: // deleted while it waits
		ticket.LetUp(time.Now(), time.Second)
		ticket.Attend(time.Now())
		defer func() { ticket.Leave(time.Now()) }()
		if state, _ := ticket.Status(); state == Waiting && rng.IntN(2) == 0 {
			ticket.End(time.Now(), Deleted)
			if state, _ := ticket.Status(); state == Gone {
				return false
			}
		}
		<-ticket.Decided()
		state, _ := ticket.Status()
		return state == Starting
	case 2: // its deadline comes
		if ticket.Expire(time.Now()).Admitted {
			return true
		}
		l.SetPriority(time.Now(), ticket.UID(), 5, time.Hour)
	}
	ticket.Attend(time.Now())
	defer func() { ticket.Leave(time.Now()) }()
	<-ticket.Decided()
	return true
}

// runReaders reads and reconfigures all the while, until the function that it
// gives is called. The number of starts at a time stays as it is.
func runReaders(l *Limiter, most int) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, read := range []func(){
		func() { l.Snapshot(time.Now()) },
		func() { l.Turns(time.Now()) },
		func() { l.Recent(time.Now()) },
		func() { l.View(time.Now(), "1-1") },
		func() { l.Named(time.Now(), "nobody") },
		func() { l.Demand(time.Now()); l.Watched() },
		func() { l.Groups(time.Now()) },
		func() { racePolicies(l) },
		func() { l.SetStalled(time.Now(), fmt.Sprintf("%d-%d", rand.IntN(16), rand.IntN(60)), time.Now()) },
		func() {
			r := Reading{Value: 100 * rand.Float64(), From: time.Now(), To: time.Now()}
			l.Observe(time.Now(), Signals{SignalCPU: r})
		},
		func() {
			events, _ := l.Drain()
			for _, e := range events {
				e.Ticket.Status()
			}
		},
		func() {
			l.Configure(time.Now(), Settings{
				MaxConcurrent: most, FillEvery: rand.N(40 * time.Microsecond), Burst: rand.IntN(9),
				NoProgressAfter: time.Hour, MaxPulling: rand.IntN(3), CPU: SignalLimit{Max: 50, Increment: 1},
			})
		},
	} {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					read()
					runtime.Gosched()
				}
			}
		})
	}
	return func() { close(done); wg.Wait() }
}

// racePolicies does one thing with policies. None holds anybody who starts for long.
func racePolicies(l *Limiter) {
	uid := fmt.Sprintf("%d-%d", rand.IntN(16), rand.IntN(60))
	switch rand.IntN(6) {
	case 0:
		l.SetPolicies(time.Now(), map[string]GroupLimits{"t1": {Starting: pods(rand.Int64N(3)), Running: pods(50), Claims: rand.IntN(2) == 0}})
	case 1:
		l.SetPolicies(time.Now(), nil)
	case 2:
		l.SetGroups(time.Now(), uid, in(t1, Amounts{"cpu": 100}))
	case 3:
		l.SetRunning(time.Now(), uid, in(t1, nil), rand.IntN(2) == 0)
	case 4:
		l.SetClaims(time.Now(), t1, rand.IntN(3)-1)
	default:
		for i := range 16 {
			l.Finished(time.Now(), fmt.Sprintf("%d-%d", i, rand.IntN(60)))
		}
	}
}
