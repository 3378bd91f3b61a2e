package throttle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func inGroup(requests throttle.Amounts) []throttle.Membership {
	return []throttle.Membership{{Key: throttle.GroupKey{Policy: "p"}, Requests: requests}}
}

// kubelet retries a pod that a bound of Running holds every 12 seconds. A stream of pods requests only CPU. It does
// not keep out for ever a pod that requests memory, too.
func TestAStreamOfSmallPodsDoesNotStarveALargePod(t *testing.T) {
	t.Parallel()
	p := newPlay(t, throttle.Settings{}, nil)
	p.l.SetPolicies(p.now, map[string]throttle.GroupLimits{
		"p": {Running: throttle.Bound{Requests: throttle.Amounts{"cpu": 4000, "memory": 4000}}},
	})
	tries := func(name string, requests throttle.Amounts) bool {
		return p.l.Join(p.now, throttle.Request{UID: name, Groups: inGroup(requests)}).TryStart(p.now).Granted
	}
	finishes := map[int]string{}
	started := false
	for second := range 300 {
		if name, ok := finishes[second]; ok {
			p.l.Finished(p.now, name)
		}
		if second >= 10 && second%12 == 10 && !started {
			started = tries("big", throttle.Amounts{"cpu": 3000, "memory": 2000})
		}
		if second%3 == 0 {
			name := fmt.Sprintf("small-%d", second)
			if tries(name, throttle.Amounts{"cpu": 1000}) {
				finishes[second+12] = name
			}
		}
		p.pass(time.Second)
	}
	require.True(t, started)
}

// After 5 seconds, the load average of one minute shows 8 % of a start.
func TestADebtOfTheLoadAverageDecaysAsTheAverageRises(t *testing.T) {
	t.Parallel()
	p := newPlay(t, throttle.Settings{Signals: throttle.SignalLimits{throttle.SignalLoad: {Max: 4, Increment: 3}}}, nil)
	measure := func(load float64) {
		var s throttle.Signals
		s[throttle.SignalLoad] = throttle.Reading{Value: load, From: p.now.Add(-time.Second), To: p.now}
		p.l.Observe(p.now, s)
		p.look()
	}
	measure(0)
	for i := range 10 {
		p.joinWaiting(fmt.Sprintf("a-%d", i), throttle.Request{})
	}
	require.Len(t, p.began, 2)
	p.pass(5 * time.Second)
	measure(0.2)
	require.Len(t, p.began, 2, "two starts owe 5.5")
	p.pass(25 * time.Second)
	measure(1)
	require.Len(t, p.began, 2, "they owe 3.6")
	p.pass(15 * time.Second)
	measure(1)
	require.Len(t, p.began, 3, "they owe 2.8")
}

func TestALoanHelpsAGroupThatIsFullOfPodsWithoutProgress(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]throttle.GroupLimits{
		"starting": {Starting: throttle.Bound{Pods: new(int64(1))}},
		"a pacer":  {Pacer: throttle.Pacer{Step: 1, MaxStagger: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, throttle.Settings{MaxConcurrent: 20}, nil)
			p.l.SetPolicies(p.now, map[string]throttle.GroupLimits{"p": limits})
			for i := range 9 {
				p.joinWaiting(fmt.Sprintf("a-%d", i), throttle.Request{Groups: inGroup(nil)})
			}
			require.Len(t, p.began, 1)
			stalls := func() {
				for name, at := range p.began {
					p.l.Lookup(name).SetStalled(p.now, epoch.Add(at))
				}
				p.look()
			}
			sizes := []int{}
			for range 6 {
				stalls()
				p.pass(10 * time.Second)
				sizes = append(sizes, len(p.began))
			}
			require.Equal(t, []int{2, 4, 8, 9, 9, 9}, sizes)
			_, reason := p.l.Lookup("a-1").Status()
			require.Equal(t, reasons.SlotLent, reason)
		})
	}
}

func TestAPodThatIsGoneIsNotAdmitted(t *testing.T) {
	t.Parallel()
	p := newPlay(t, throttle.Settings{MaxConcurrent: 1}, nil)
	gone := p.l.Join(p.now, throttle.Request{UID: "a"})
	gone.End(p.now, reasons.Deleted)
	for name, d := range map[string]throttle.Decision{
		"TryStart": gone.TryStart(p.now), "Reserve": gone.Reserve(p.now, time.Minute, throttle.RetriedSoon), "DeadlineReached": gone.DeadlineReached(p.now),
	} {
		require.Equal(t, throttle.Decision{Reason: reasons.Deleted}, d, name)
	}
	p.joinWaiting("b-0", throttle.Request{})
	b := p.l.Lookup("b-0")
	require.True(t, b.TryStart(p.now).Granted)
	b.End(p.now, reasons.Ready)
	require.True(t, b.TryStart(p.now).Granted, "it has started, and continues")
}
