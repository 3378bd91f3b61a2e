package throttle

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// advance is the loop of a caller. It advances the limiter when the limiter asked for it, and after every change.
func advance(ctx context.Context, l *Limiter) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Changed():
		case <-timer.C:
		}
		if next := l.Advance(time.Now()); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// runLoop runs the loop until the returned function is called.
func runLoop(t *testing.T, l *Limiter) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { advance(ctx, l) })
	return func() { cancel(); wg.Wait() }
}

// Only the loop wakes a waiting pod. If Changed misses a change, the bubble ends in a deadlock, or the pod wakes too
// late.
func TestTheLoopOfACallerWakesAllPodsInTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings Settings
		then     func(*Limiter)
		want     time.Duration
		reason   reasons.Reason
	}{
		"a token fills": {
			settings: Settings{FillEvery: 20 * time.Second}, want: 20 * time.Second, reason: reasons.WithinLimits,
		},
		"a start is stuck": {
			settings: Settings{MaxConcurrent: 1, StartTimeout: time.Minute}, want: time.Minute, reason: reasons.WithinLimits,
		},
		"maxWait is over": {
			settings: Settings{MaxConcurrent: 1, MaxWait: 30 * time.Second}, want: 30 * time.Second, reason: reasons.MaxWait,
		},
		"maxWait becomes shorter": {
			settings: Settings{MaxConcurrent: 1},
			then:     func(l *Limiter) { l.SetPriority(time.Now(), "b", 0, 40*time.Second) },
			want:     40 * time.Second, reason: reasons.MaxWait,
		},
		"the time of the last call is long past": {
			settings: Settings{MaxConcurrent: 1, MaxWait: time.Hour, StartTimeout: 2 * time.Hour},
			then: func(l *Limiter) {
				l.Configure(time.Now(), Settings{FillEvery: time.Minute, MaxWait: time.Hour})
				l.Lookup("a").End(time.Now(), reasons.Ready)
			},
			want: 5 * time.Second, reason: reasons.WithinLimits,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				l := New(began, c.settings)
				defer runLoop(t, l)()
				l.Join(began, Request{UID: "a"}).Wait(began)
				b := l.Join(began, Request{UID: "b"})
				b.Wait(began)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if c.then != nil {
					c.then(l)
				}
				<-b.Decided()
				require.InDelta(t, c.want.Seconds(), time.Since(began).Seconds(), 1e-3)
				_, reason := b.Status()
				require.Equal(t, c.reason, reason)
			})
		})
	}
}

// Every change that opens a policy wakes the pods that it held.
func TestTheLoopOfACallerWakesThePodsThatAPolicyHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits GroupLimits
		then   func(*Limiter)
	}{
		"another finishes": {GroupLimits{Running: pods(1)}, func(l *Limiter) { l.Finished(time.Now(), "a") }},
		"a start ends":     {GroupLimits{Starting: pods(1)}, func(l *Limiter) { l.Lookup("a").End(time.Now(), reasons.Failed) }},
		"a pod is ready": {GroupLimits{Pacer: Pacer{Step: 1, MaxStagger: 9}}, func(l *Limiter) {
			l.SetGroups(time.Now(), PodGroups{UID: "a", Groups: in(t1, nil), Running: true, Ready: true})
		}},
		"a claim comes":                 {GroupLimits{Claims: &Claims{}}, func(l *Limiter) { l.SetClaims(time.Now(), t1, 2) }},
		"the policy changes":            {GroupLimits{Running: pods(1)}, func(l *Limiter) { l.SetPolicies(time.Now(), map[string]GroupLimits{"t1": {Running: pods(2)}}) }},
		"the policy is gone":            {GroupLimits{Running: pods(1)}, func(l *Limiter) { l.SetPolicies(time.Now(), nil) }},
		"it changes its group":          {GroupLimits{Running: pods(1)}, func(l *Limiter) { l.SetGroups(time.Now(), PodGroups{UID: "b", Groups: nil}) }},
		"another pod changes its group": {GroupLimits{Running: pods(1)}, func(l *Limiter) { l.SetGroups(time.Now(), PodGroups{UID: "a", Groups: nil}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				l := New(began, Settings{})
				defer runLoop(t, l)()
				l.SetPolicies(began, map[string]GroupLimits{"t1": c.limits})
				l.SetClaims(began, t1, 1)
				l.Join(began, Request{UID: "a", Groups: in(t1, nil)}).Wait(began)
				b := l.Join(began, Request{UID: "b", Groups: in(t1, nil)})
				b.Wait(began)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				require.False(t, decided(b))
				c.then(l)
				<-b.Decided()
				require.Equal(t, 5*time.Second, time.Since(began))
			})
		})
	}
}

// A herd under both limits takes as long as the limits allow, and no longer.
func TestAHerdIsAsFastAsTheLimitsAllow(t *testing.T) {
	t.Parallel()
	const pods, slots, start = 60, 4, 10 * time.Second
	for fill, want := range map[time.Duration]time.Duration{
		0:               pods / slots * start,
		3 * time.Second: (pods-1)*3*time.Second + start,
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			l := New(began, Settings{MaxConcurrent: slots, FillEvery: fill, MaxWait: time.Hour})
			defer runLoop(t, l)()
			var herd sync.WaitGroup
			for i := range pods {
				herd.Go(func() {
					ticket := l.Join(time.Now(), Request{UID: fmt.Sprint(i)})
					ticket.Wait(time.Now())
					defer func() { ticket.StopWaiting(time.Now()) }()
					<-ticket.Decided()
					time.Sleep(start)
					ticket.End(time.Now(), reasons.Ready)
				})
			}
			herd.Wait()
			require.InDelta(t, want.Seconds(), time.Since(began).Seconds(), 0.01)
		})
	}
}
