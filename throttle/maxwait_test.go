package throttle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// overdue plays tenants that keep many pods waiting. Most of the pods hang until they are stuck.
type overdue struct {
	t        *testing.T
	l        *throttle.Limiter
	rng      *rand.Rand
	now      time.Time
	settings throttle.Settings
	waiting  map[string]*overduePod
	ends     []end
	joined   int
	worst    float64
}

// end is the time at which a start that does not hang is over.
type end struct {
	ticket *throttle.Ticket
	at     time.Time
}

type overduePod struct {
	ticket *throttle.Ticket
	due    time.Time
	before int // the number of pods that were overdue before it
	is     bool
}

// Starts may take any time, any pods may come, and anything may hold them except a bound of Running. A pod becomes
// overdue after k others. It starts within 2(k+1) start timeouts of its MaxWait or, if that is longer, as many times of
// a token.
func TestMaxWaitBoundsTheWaitOfEveryPod(t *testing.T) {
	t.Parallel()
	worst := 0.0
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 3))
		o := &overdue{
			t: t, rng: rng, now: epoch, waiting: map[string]*overduePod{},
			settings: throttle.Settings{
				MaxConcurrent: 1 + rng.IntN(4), StartTimeout: time.Minute, MaxWait: 2 * time.Minute, NoProgressAfter: -1, NoFairness: seed%4 == 0,
			},
		}
		if seed%3 == 1 {
			o.settings.FillEvery, o.settings.Burst = time.Duration(5+rng.IntN(300))*time.Second, 1
		}
		o.l = throttle.New(o.now, o.settings)
		one := int64(1)
		o.l.SetPolicies(o.now, map[string]throttle.GroupLimits{"one": {Starting: throttle.Bound{Pods: &one}}, "none": {Claims: &throttle.Claims{}}})
		for range 900 {
			o.step(seed)
		}
		worst = max(worst, o.worst)
	}
	t.Logf("at most %.2f start timeouts for each pod overdue before it, and itself", worst)
}

func (o *overdue) step(seed uint64) {
	if len(o.waiting) < 40 && o.rng.IntN(6) == 0 {
		o.join(seed)
	}
	for _, uid := range slices.Sorted(maps.Keys(o.waiting)) { // in a fixed order, so that a seed gives the same play
		p, still := o.waiting[uid]
		if !still {
			continue
		}
		if o.rng.IntN(100) == 0 {
			p.ticket.DeadlineReached(o.now)
			o.look()
		}
		if _, still = o.waiting[uid]; still && o.rng.IntN(200) == 0 && seed%2 == 0 {
			p.ticket.End(o.now, reasons.Deleted)
			o.look()
		}
	}
	o.now = o.now.Add(time.Second)
	o.ends = slices.DeleteFunc(o.ends, func(e end) bool {
		if o.now.Before(e.at) {
			return false
		}
		e.ticket.End(o.now, reasons.Ready)
		return true
	})
	o.l.Advance(o.now)
	o.look()
	o.judge(seed)
}

func (o *overdue) join(seed uint64) {
	o.joined++
	r := throttle.Request{
		UID: fmt.Sprint(o.joined), Flow: fmt.Sprint(o.rng.IntN(3)), Priority: int32(o.rng.IntN(3)), Repeats: o.rng.IntN(2),
		MaxWait: time.Duration(o.rng.IntN(150)) * time.Second,
	}
	if seed%5 == 2 {
		if policy := []string{"one", "none", ""}[o.rng.IntN(3)]; policy != "" {
			r.Groups = []throttle.Membership{{Key: throttle.GroupKey{Policy: policy}}}
		}
	}
	wait := o.settings.MaxWait
	if r.MaxWait > 0 {
		wait = min(wait, max(r.MaxWait, 30*time.Second))
	}
	p := &overduePod{ticket: o.l.Join(o.now, r), due: o.now.Add(wait)}
	o.waiting[r.UID] = p
	p.ticket.Wait(o.now)
	o.look()
}

// look records the pods that started. Most of them hang.
func (o *overdue) look() {
	for _, e := range o.l.Drain() {
		if e.State == throttle.Waiting {
			continue
		}
		delete(o.waiting, e.Ticket.UID())
		if e.State == throttle.Starting && o.rng.IntN(4) == 0 {
			o.ends = append(o.ends, end{e.Ticket, o.now.Add(time.Duration(1+o.rng.IntN(59)) * time.Second)})
		}
	}
}

func (o *overdue) judge(seed uint64) {
	for _, p := range o.waiting {
		if !p.is && !o.now.Before(p.due) {
			p.is = true
			for _, other := range o.waiting {
				if other != p && !other.due.After(p.due) {
					p.before++
				}
			}
		}
		if !p.is {
			continue
		}
		// The play goes by the second, so one second late is not late.
		late := (o.now.Sub(p.due) - time.Second).Seconds() / max(o.settings.StartTimeout, o.settings.FillEvery).Seconds() / float64(p.before+1)
		o.worst = max(o.worst, late)
		require.LessOrEqual(o.t, late, 2.0, "seed %d: %d pods were overdue before it", seed, p.before)
	}
}
