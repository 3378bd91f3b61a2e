package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	stallAfter = 10 * time.Second // NoProgressAfter
	lentSlots  = "the node"       // the debtor of slots
)

// lender judges each admission by the rules of loans, pacers and claims. It knows only what the public API shows:
// which pods start, are ready, make no progress and are claimed. Deadlines are far away.
type lender struct {
	t      *testing.T
	l      *throttle.Limiter
	rng    *rand.Rand
	now    time.Time
	slots  int
	pods   []*lentPod
	pacer  throttle.Pacer
	claims int
	// loans are the latest loans, by their debtor: the group, or lentSlots.
	loans map[string]lentLoan
	trace []string
}

type lentLoan struct {
	size, left int
	at         time.Time // when it was made, or a start got ready since
	helped     bool      // a start got ready since
}

// lentPod is a pod in the group of its name, or in none.
type lentPod struct {
	uid, group string
	ticket     *throttle.Ticket
	state      throttle.State
	runs       bool // it was admitted, and is not ready
	ready      bool
	stalled    time.Time
}

func TestLoansPacersAndClaims(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 21))
		o := &lender{t: t, rng: rng, now: epoch, slots: 1 + rng.IntN(5), loans: map[string]lentLoan{}}
		o.pacer = throttle.Pacer{Step: 1 + rng.IntN(3), MaxStagger: 3 + rng.IntN(6)}
		if seed%2 == 0 {
			o.pacer = throttle.Pacer{MinInitial: 1 + rng.IntN(2), Multiplier: 0.5 + rng.Float64(), MaxStagger: 3 + rng.IntN(6)}
		}
		o.l = throttle.New(o.now, throttle.Settings{
			MaxConcurrent: o.slots, MaxWait: 100 * time.Hour, StartTimeout: 100 * time.Hour, NoProgressAfter: stallAfter,
		})
		two := int64(2)
		o.l.SetPolicies(o.now, map[string]throttle.GroupLimits{
			"starting": {Starting: throttle.Bound{Pods: &two}}, "paced": {Pacer: o.pacer}, "claimed": {Claims: &throttle.Claims{}},
		})
		o.play(seed, kinds)
	}
	t.Log(kinds)
	for _, kind := range []string{"slot", "starting", "paced"} {
		require.Greater(t, kinds[kind], 20, "loans of %s", kind)
	}
}

// play makes random calls. It logs them if one fails.
func (o *lender) play(seed uint64, kinds map[string]int) {
	defer func() {
		if o.t.Failed() {
			o.t.Logf("seed %d, %d slots, %+v:\n%s", seed, o.slots, o.pacer, strings.Join(o.trace[max(0, len(o.trace)-40):], "\n"))
		}
	}()
	for range 400 {
		o.step(kinds)
	}
}

func (o *lender) say(format string, args ...any) {
	o.trace = append(o.trace, o.now.Sub(epoch).String()+" "+fmt.Sprintf(format, args...))
}

func (o *lender) step(kinds map[string]int) {
	starting := o.all(func(p *lentPod) bool { return p.state == throttle.Starting })
	switch n := o.rng.IntN(100); {
	case n < 30 && len(o.all(func(p *lentPod) bool { return p.state == throttle.Waiting })) < 12:
		p := &lentPod{uid: fmt.Sprint("p", len(o.pods)), group: []string{"starting", "paced", "claimed", ""}[o.rng.IntN(4)], state: throttle.Waiting}
		r := throttle.Request{UID: p.uid}
		if p.group != "" {
			r.Groups = []throttle.Membership{{Key: throttle.GroupKey{Policy: p.group}}}
		}
		o.pods = append(o.pods, p)
		o.say("%s of %q waits", p.uid, p.group)
		p.ticket = o.l.Join(o.now, r)
		p.ticket.Wait(o.now)
	case n < 55 && len(starting) > 0:
		p := starting[o.rng.IntN(len(starting))]
		if o.rng.IntN(8) == 0 {
			p.stalled = time.Time{}
			o.takeBack(p)
		} else if p.stalled.IsZero() {
			p.stalled = o.now
		}
		o.say("%s stalled: %t", p.uid, !p.stalled.IsZero())
		o.l.Lookup(p.uid).SetStalled(o.now, p.stalled)
	case n < 63 && len(starting) > 0:
		p := starting[o.rng.IntN(len(starting))]
		o.say("%s ends", p.uid)
		p.ticket.End(o.now, reasons.Ready)
	case n < 68:
		if ran := o.all(func(p *lentPod) bool { return p.runs && p.ready }); len(ran) > 0 {
			p := ran[o.rng.IntN(len(ran))]
			o.say("%s finished", p.uid)
			p.runs, p.ready = false, false
			o.l.Finished(o.now, p.uid)
		}
	case n < 75:
		o.claims = o.rng.IntN(5) - 1
		o.say("%d claims", o.claims)
		o.l.SetClaims(o.now, throttle.GroupKey{Policy: "claimed"}, o.claims)
	default:
		o.now = o.now.Add(time.Duration(o.rng.IntN(8)) * time.Second)
		o.l.Advance(o.now)
	}
	o.look(kinds)
	o.live()
}

func (o *lender) all(of func(*lentPod) bool) []*lentPod {
	return slices.DeleteFunc(slices.Clone(o.pods), func(p *lentPod) bool { return !of(p) })
}

func (o *lender) look(kinds map[string]int) {
	for _, e := range o.l.Drain() {
		p := o.pods[slices.IndexFunc(o.pods, func(p *lentPod) bool { return p.uid == e.Ticket.UID() })]
		switch e.State {
		case throttle.Starting:
			o.say("-> %s starts, %s", p.uid, e.Reason)
			o.judge(p, e.Reason, kinds)
			p.state, p.runs, p.ready, p.stalled = throttle.Starting, true, false, time.Time{}
		case throttle.Started, throttle.Gone:
			p.state, p.ready = e.State, true
			o.takeBack(p)
			if loan := o.loans[lentSlots]; loan.size > 0 {
				loan.at, loan.helped = o.now, true
				o.loans[lentSlots] = loan
			}
			if len(o.all(func(p *lentPod) bool { return p.state == throttle.Starting })) <= o.slots { // all loans are paid back
				o.loans[lentSlots] = lentLoan{}
			}
		case throttle.Waiting:
		}
	}
}

// takeBack takes back the unused loans, because p ended or makes progress.
func (o *lender) takeBack(p *lentPod) {
	for _, of := range []string{lentSlots, p.group} {
		loan := o.loans[of]
		loan.left = 0
		o.loans[of] = loan
	}
}

// judge fails the test for an admission that the limits and loans do not allow.
func (o *lender) judge(p *lentPod, reason reasons.Reason, kinds map[string]int) {
	beside := func(of *lentPod) bool { return of != p && of.group == p.group }
	starts := o.all(func(of *lentPod) bool { return of.state == throttle.Starting })
	group := o.all(func(of *lentPod) bool { return beside(of) && of.state == throttle.Starting })
	paced := o.all(func(of *lentPod) bool { return beside(of) && of.runs && !of.ready })
	ready := o.all(func(of *lentPod) bool { return beside(of) && of.runs && of.ready })
	var full []*lentPod // the pods that fill the group
	switch most, bounded := o.pacer.Allows(len(ready)); p.group {
	case "claimed":
		require.True(o.t, o.claims < 0 || len(group) < o.claims, "%s: a loan passes the %d claims", p.uid, o.claims)
	case "starting":
		if len(group) >= 2 {
			full = group
		}
	case "paced":
		if bounded && len(paced) >= most {
			full = paced
		}
	}
	lent := false
	if full != nil {
		o.lend(p.group, p, full)
		kinds[p.group]++
		lent = true
	}
	if len(starts) >= o.slots {
		o.lend(lentSlots, p, starts)
		kinds["slot"]++
		lent = true
	}
	if lent {
		require.Equal(o.t, reasons.SlotLent, reason, p.uid)
	}
}

// lend takes one start of an open loan. If it is time, it makes the next loan.
func (o *lender) lend(of string, p *lentPod, holders []*lentPod) {
	loan := o.loans[of]
	if loan.left > 0 {
		loan.left--
		o.loans[of] = loan
		return
	}
	last := time.Time{}
	for _, h := range holders {
		require.False(o.t, h.stalled.IsZero(), "%s: %s makes progress", p.uid, h.uid)
		if h.stalled.After(last) {
			last = h.stalled
		}
	}
	require.GreaterOrEqual(o.t, o.now.Sub(last), stallAfter/2, "%s: lent too soon to %s, held by %v, %+v", p.uid, of, uidsOf(holders), loan)
	if of != lentSlots {
		// The time of the loan cannot be seen, because it may have waited for a slot.
		// TestALoanHelpsAGroupThatIsFullOfPodsWithoutProgress checks its size.
		o.loans[of] = lentLoan{left: len(o.pods)}
		return
	}
	since := o.now.Sub(loan.at)
	require.True(o.t, loan.size == 0 || since >= stallAfter, "%s: the last loan was %s ago", p.uid, since)
	size := 1
	if loan.size > 0 && !loan.helped && since <= 3*stallAfter {
		size = 2 * loan.size
	}
	o.loans[of] = lentLoan{size: size, left: size - 1, at: o.now}
}

// live fails the test for a jammed node. If all starts make no progress for long, a waiting pod that no group holds
// must start.
func (o *lender) live() {
	starts := o.all(func(p *lentPod) bool { return p.state == throttle.Starting })
	free := o.all(func(p *lentPod) bool { return p.state == throttle.Waiting && p.group == "" })
	if len(free) == 0 {
		return
	}
	require.GreaterOrEqual(o.t, len(starts), o.slots, "%s waits beside a free slot", free[0].uid)
	last := o.loans[lentSlots].at
	for _, p := range starts {
		if p.stalled.IsZero() {
			return
		}
		if p.stalled.After(last) {
			last = p.stalled
		}
	}
	require.Less(o.t, o.now.Sub(last), stallAfter+8*time.Second, "all slots are jammed, and nothing is lent")
}

func uidsOf(pods []*lentPod) (uids []string) {
	for _, p := range pods {
		uids = append(uids, p.uid)
	}
	return uids
}
