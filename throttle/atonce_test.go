package throttle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Pods that wait in the room, or are refused at their sandbox, ask only for a place in the gate. If no other pod is expected,
// a pod that would start at once with a process gets one, whatever lets it start: a free slot, a loan, or its MaxWait.
// Otherwise it would wait for as long as it is not asked at a container.
func TestAPodThatWouldStartAtOnceGetsAPlace(t *testing.T) {
	t.Parallel()
	seen := map[reasons.Reason]int{}
	for seed := range uint64(3000) {
		n := nodeOfLimits(t, rand.New(rand.NewPCG(seed, 4)))
		for _, pod := range n.l.Snapshot(n.now).Waiting {
			other := func(o *Ticket) bool { return o.uid != pod.UID && o.awaited(n.now) }
			if n.l.queue.couldStart(1, other) > 0 || pod.Present {
				continue
			}
			for _, refusal := range []Refusal{RetriedSoon, WaitsOn} {
				asks := n.l.Lookup(pod.UID)
				reserved := asks.Reserve(n.now, waitable, refusal)
				asks.reserved, asks.awaitedUntil = false, time.Time{}
				if d := asks.TryStart(n.now); d.Granted {
					require.True(t, reserved.Granted, "seed %d, %s, refusal %d: %s, but %s", seed, pod.UID, refusal, reserved.Reason, d.Reason)
					seen[d.Reason]++
					break
				}
				asks.awaitedUntil = time.Time{}
			}
		}
	}
	for _, reason := range []reasons.Reason{reasons.WithinLimits, reasons.SlotLent, reasons.MaxWait} {
		require.Greater(t, seen[reason], 10, reason)
	}
}

// nodeOfLimits returns a node with limits and a policy, on which pods of two flows have come, started, hung and ended, all
// by chance.
func nodeOfLimits(t *testing.T, rng *rand.Rand) *node {
	t.Helper()
	s := Settings{MaxWait: time.Duration(1+rng.IntN(20)) * 15 * time.Second}
	switch rng.IntN(3) {
	case 0:
		s.MaxConcurrent, s.CountCores = 1+rng.IntN(4), rng.IntN(3) == 0
	case 1:
		s.Adaptive = &adaptive.Settings{Min: 1, Cores: 4}
	}
	if rng.IntN(3) == 0 {
		s.Signals[SignalCPU] = SignalLimit{Max: 80, Increment: float64(10 * rng.IntN(3))}
	}
	if rng.IntN(4) == 0 {
		s.FillEvery, s.Burst = time.Duration(1+rng.IntN(200))*time.Second, 1+rng.IntN(3)
	}
	n := newNode(t, s)
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": [...]GroupLimits{
		{}, {Starting: pods(1 + rng.Int64N(3))}, {Running: pods(1 + rng.Int64N(5))}, {Claims: &Claims{Slots: 3}},
		{Pacer: Pacer{Step: 1 + rng.IntN(3), MaxStagger: 10}},
	}[rng.IntN(5)]})
	for i := range 5 + rng.IntN(60) {
		one := func(tickets []*Ticket, do func(*Ticket)) {
			if len(tickets) > 0 {
				do(tickets[rng.IntN(len(tickets))])
			}
		}
		switch rng.IntN(9) {
		case 0, 1:
			r := Request{UID: fmt.Sprint(i), Flow: []string{"a", "b"}[rng.IntN(2)], Priority: rng.Int32N(2)}
			if rng.IntN(2) == 0 {
				r.Groups = in(t1, nil)
			}
			n.l.Join(n.now, r)
		case 2:
			one(n.l.Waiting(), func(t *Ticket) { t.Wait(n.now) })
		case 3:
			one(n.l.Waiting(), func(t *Ticket) { t.TryStart(n.now) })
		case 4:
			one(n.l.Starting(), func(t *Ticket) { t.SetStalled(n.now, n.now) })
		case 5:
			one(n.l.Starting(), func(t *Ticket) { t.End(n.now, reasons.Ready) })
		case 6:
			n.measure(SignalCPU, float64(rng.IntN(100)))
		case 7:
			n.l.SetClaims(n.now, t1, rng.IntN(4)-1)
		default:
			n.pass(time.Duration(rng.IntN(30)) * time.Second)
		}
	}
	n.pass(0)
	return n
}
