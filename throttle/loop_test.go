package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// owner calls a limiter as its owner must, and not more often: Advance after every change, and when the limiter asked for
// it.
type owner struct {
	*Limiter
	now  time.Time
	next time.Time // what Advance returned last
}

// until lets time pass until a time, or until something has happened.
func (o *owner) until(at time.Time, happened func() bool) {
	for !happened() {
		switch {
		case o.Changed():
		case o.next.IsZero() || o.next.After(at):
			o.now = at
			return
		default:
			o.now = o.next
		}
		o.next = o.Advance(o.now)
	}
}

// decides lets time pass until a ticket is decided, and returns how long that took; more than an hour if it is not.
func (o *owner) decides(t *Ticket) time.Duration {
	began := o.now
	o.until(began.Add(time.Hour+1), func() bool { return decided(t) })
	return o.now.Sub(began)
}

func (o *owner) passes(d time.Duration) { o.until(o.now.Add(d), func() bool { return false }) }

// If Changed misses a change, the pod is admitted too late or never.
func TestTheOwnerWakesAllPodsInTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings Settings
		then     func(*owner)
		want     time.Duration // after 5 seconds
		reason   reasons.Reason
	}{
		"a token fills": {
			settings: Settings{FillEvery: 20 * time.Second}, want: 15 * time.Second, reason: reasons.WithinLimits,
		},
		"a start is stuck": {
			settings: Settings{MaxConcurrent: 1, StartTimeout: time.Minute}, want: 55 * time.Second, reason: reasons.WithinLimits,
		},
		"maxWait is over": {
			settings: Settings{MaxConcurrent: 1, MaxWait: 30 * time.Second}, want: 25 * time.Second, reason: reasons.MaxWait,
		},
		"maxWait becomes shorter": {
			settings: Settings{MaxConcurrent: 1},
			then:     func(o *owner) { o.Lookup("b").SetPriority(o.now, 0, 40*time.Second) },
			want:     35 * time.Second, reason: reasons.MaxWait,
		},
		"the time of the last call is long past": {
			settings: Settings{MaxConcurrent: 1, MaxWait: time.Hour, StartTimeout: 2 * time.Hour},
			then: func(o *owner) {
				o.Configure(o.now, Settings{FillEvery: time.Minute, MaxWait: time.Hour})
				o.Lookup("a").End(o.now, reasons.Ready)
			},
			want: 0, reason: reasons.WithinLimits,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &owner{Limiter: New(t0, c.settings), now: t0}
			o.Join(t0, Request{UID: "a"}).Wait(t0)
			b := o.Join(t0, Request{UID: "b"})
			b.Wait(t0)
			o.passes(5 * time.Second)
			if c.then != nil {
				c.then(o)
			}
			require.InDelta(t, c.want.Seconds(), o.decides(b).Seconds(), 1e-3)
			_, reason := b.Status()
			require.Equal(t, c.reason, reason)
		})
	}
}

// Every change that opens a policy wakes the pods that it held.
func TestTheOwnerWakesThePodsThatAPolicyHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits GroupLimits
		then   func(*owner)
	}{
		"another finishes": {GroupLimits{Running: pods(1)}, func(o *owner) { o.Finished(o.now, "a") }},
		"a start ends":     {GroupLimits{Starting: pods(1)}, func(o *owner) { o.Lookup("a").End(o.now, reasons.Failed) }},
		"a pod is ready": {GroupLimits{Pacer: Pacer{Step: 1, MaxStagger: 9}}, func(o *owner) {
			o.SetGroups(o.now, PodGroups{UID: "a", Groups: in(t1, nil), Running: true, Ready: true})
		}},
		"a claim comes":                 {GroupLimits{Claims: &Claims{}}, func(o *owner) { o.SetClaims(o.now, t1, 2) }},
		"the policy changes":            {GroupLimits{Running: pods(1)}, func(o *owner) { o.SetPolicies(o.now, map[string]GroupLimits{"t1": {Running: pods(2)}}) }},
		"the policy is gone":            {GroupLimits{Running: pods(1)}, func(o *owner) { o.SetPolicies(o.now, nil) }},
		"it changes its group":          {GroupLimits{Running: pods(1)}, func(o *owner) { o.SetGroups(o.now, PodGroups{UID: "b", Groups: nil}) }},
		"another pod changes its group": {GroupLimits{Running: pods(1)}, func(o *owner) { o.SetGroups(o.now, PodGroups{UID: "a", Groups: nil}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &owner{Limiter: New(t0, Settings{}), now: t0}
			o.SetPolicies(t0, map[string]GroupLimits{"t1": c.limits})
			o.SetClaims(t0, t1, 1)
			o.Join(t0, Request{UID: "a", Groups: in(t1, nil)}).Wait(t0)
			b := o.Join(t0, Request{UID: "b", Groups: in(t1, nil)})
			b.Wait(t0)
			o.passes(5 * time.Second)
			require.False(t, decided(b))
			c.then(o)
			require.Zero(t, o.decides(b))
		})
	}
}

// A start that hangs leaves its slot to a pod of another flow in time, also while other starts make progress.
func TestTheOwnerWakesThePodThatGetsTheSlotOfAStartThatHangs(t *testing.T) {
	t.Parallel()
	o := &owner{Limiter: New(t0, Settings{MaxConcurrent: 2, NoProgressAfter: 20 * time.Second}), now: t0}
	for _, uid := range []string{"hangs", "works", "same"} {
		o.Join(t0, Request{UID: uid, Flow: "a"}).Wait(t0)
	}
	other := o.Join(t0, Request{UID: "other", Flow: "b"})
	other.Wait(t0)
	o.passes(5 * time.Second)
	o.Lookup("hangs").SetStalled(o.now, t0)
	require.InDelta(t, 15.0, o.decides(other).Seconds(), 1e-3)
	_, reason := other.Status()
	require.Equal(t, reasons.SlotLent, reason)
}
