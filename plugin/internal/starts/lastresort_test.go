package starts

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// newBrokenNode returns a node whose limiter is alive and admits no pod. The bound of the last resort is 20 minutes.
func newBrokenNode(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.configured(t, "spec: {}", throttle.Settings{MaxConcurrent: 5, MaxWait: 10 * time.Minute, StartTimeout: 5 * time.Minute})
	n.ledger.limiter.SetFrozen(time.Now(), true)
	return n
}

// retries makes kubelet ask for a container of the pod every 15 seconds, until it may start or a time is over.
func (p *testPod) retries(within time.Duration) (admitted bool) {
	for ; within > 0; within -= 15 * time.Second {
		if p.asks("app").Decision.Granted {
			return true
		}
		p.n.passes(15 * time.Second)
	}
	return false
}

func TestAPodStartsAsALastResortIfTheLimiterAdmitsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newBrokenNode(t)
		refused, gated, inRoom := n.pod("refused").runs(), n.pod("gated").runs(), n.pod("room")
		waits := gated.waits("app")
		room, _ := n.EnterRoom(time.Now(), Identity{UID: "room", Namespace: "default", Name: "room"}, podwatch.Pod{}, time.Now(), time.Time{}, false)
		defer room.Leave()
		require.False(t, refused.retries(20*time.Minute), "a limiter that works may need as long")
		require.True(t, refused.retries(time.Minute))
		n.passes(time.Minute)
		for _, one := range []Ticket{waits, room.Ticket} {
			select {
			case <-one.Decided():
			default:
				assert.Fail(t, "still waits", one.UID())
			}
		}
		for _, p := range []*testPod{refused, gated, inRoom} {
			p.is(throttle.Starting, reasons.LastResort)
		}
		assert.InDelta(t, 3, n.counted("pod_pacemaker_admissions_total")["LastResort"], 0)
	})
}

// A pod that is never restarted gets its sandbox only together with a slot.
func TestASandboxIsMadeAsALastResort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newBrokenNode(t)
		p := n.pod("job")
		begin, admitted := time.Now(), false
		for !admitted && time.Since(begin) < time.Hour {
			d, _ := n.Sandbox(time.Now(), NewSandbox{Sandbox: p.sandbox, Refusable: true, SlotFirst: true})
			if admitted = d.Granted; !admitted {
				n.passes(15 * time.Second)
			}
		}
		assert.InDelta(t, 20*time.Minute, time.Since(begin), float64(time.Minute))
		p.is(throttle.Starting, reasons.LastResort)
	})
}

// A herd does not start at once.
func TestTheLastResortStartsOnePodAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newBrokenNode(t)
		for _, name := range []string{"a", "b", "c"} {
			n.pod(name).runs().waits("app")
		}
		n.passes(20*time.Minute + 5*time.Second)
		_, starting := n.names()
		require.Len(t, starting, 1)
		n.passes(10 * time.Second)
		_, starting = n.names()
		assert.Len(t, starting, 2)
	})
}

func TestTheLastResortStartsNoPodThatWaitsForGoodReason(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		n.enforce(t, noneRuns)
		running := n.pod("running", factsOf(nil, nil))
		for range 200 { // kubelet tries again for 50 minutes
			assert.False(t, running.run().Granted)
			n.passes(15 * time.Second)
		}
	})
	synctest.Test(t, func(t *testing.T) { // kubelet pulls an image for an hour, and is then away
		n := newBrokenNode(t)
		n.ledger.limiter.SetFrozen(time.Now(), false)
		p := n.pod("pulls").runs()
		n.passes(time.Hour)
		n.ledger.limiter.SetFrozen(time.Now(), true)
		require.False(t, p.asks("app").Decision.Granted)
		n.passes(time.Hour)
		p.is(throttle.Waiting, reasons.NotPresent)
	})
	synctest.Test(t, func(t *testing.T) { // a limiter that works keeps its promise: none of 4 pods ever gets ready
		n := newNode(t)
		for _, name := range []string{"a", "b", "c", "d"} {
			p := n.pod(name).runs()
			if !p.asks("app").Decision.Granted {
				n.EnterGate(time.Now(), Identity{UID: name}, p.latest["app"].GetId(), time.Now(), time.Time{})
			}
		}
		n.passes(2 * time.Hour)
		waiting, _ := n.names()
		assert.Empty(t, waiting)
		assert.Zero(t, n.counted("pod_pacemaker_admissions_total")["LastResort"])
	})
}

// startAfter has a bound of its own.
func TestAPodThatWaitsForOthersIsNotStartedAsALastResort(t *testing.T) {
	t.Parallel()
	l := &aStarts().ledger
	now := time.Now()
	waits := l.at(Identity{UID: "p"})
	waits.ticket = l.limiter.Join(now, throttle.Request{UID: "p"})
	for range 3 {
		require.False(t, l.startAsLastResort(now, waits, reasons.StartAfter))
		now = now.Add(time.Hour)
	}
	require.True(t, l.startAsLastResort(now, waits, reasons.Queued))
}
