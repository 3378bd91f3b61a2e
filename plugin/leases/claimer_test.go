package leases

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestASlotIsTakenForAStartAndGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		a, b := startClaiming(t, api, "a", 1), startClaiming(t, api, "b", 1)
		first := a.join("1")
		time.Sleep(time.Second)
		require.Equal(t, []string{"a"}, api.held())
		require.Equal(t, 1, a.starting())
		require.Equal(t, 1, api.written())
		next, other := a.join("2"), b.join("3")
		time.Sleep(25 * time.Second)
		require.Equal(t, 1, a.starting()+b.starting(), "the slot is renewed for as long as the start takes")
		a.end(first)
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, a.starting()+b.starting())
		endOne := func() {
			if a.starting() == 1 {
				a.end(next)
			} else {
				b.end(other)
			}
		}
		endOne()
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, a.starting()+b.starting())
		endOne()
		time.Sleep(3 * time.Second)
		require.Empty(t, api.held(), "nothing is left behind")
		require.Zero(t, a.View().Failures+b.View().Failures)
		writes := api.written()
		time.Sleep(time.Hour)
		require.Equal(t, writes, api.written())
	})
}

// A daemon that is killed leaves its Leases; other nodes take them 30 s later.
func TestTheSlotsOfADeadNodeExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		a, b := startClaiming(t, api, "a", 1), startClaiming(t, api, "b", 1)
		a.join("1")
		time.Sleep(time.Second)
		b.join("2")
		time.Sleep(time.Second)
		a.stop() // a start is under way: its Lease stays, as if the daemon were killed
		require.Equal(t, []string{"a"}, api.held())
		time.Sleep(27 * time.Second)
		require.Zero(t, b.starting())
		time.Sleep(15 * time.Second)
		require.Equal(t, 1, b.starting())
		require.Equal(t, []string{"b"}, api.held())
	})
}

// The next daemon of the node takes the Leases of its starts over.
func TestTheNextDaemonFindsItsLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		a, b := startClaiming(t, api, "a", 1), startClaiming(t, api, "b", 1)
		ticket := a.join("1")
		time.Sleep(time.Second)
		b.join("2")
		a.stop()
		time.Sleep(10 * time.Second)
		a.run()
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"a"}, api.held())
		require.Zero(t, b.starting())
		a.end(ticket)
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, b.starting())
	})
}

// While the API server is away no further pod starts, until the policy opens.
func TestAPolicyOpensWhenTheAPIServerIsAway(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]error{
		"away":      errors.New("connection refused"),
		"forbidden": apierrors.NewForbidden(leaseResource, "", errors.New("no role")),
		"overload":  apierrors.NewGenericServerResponse(http.StatusTooManyRequests, "create", leaseResource, "", "busy", 1, true),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				a := startClaiming(t, api, "a", 1)
				ticket := a.join("1")
				time.Sleep(time.Second)
				require.Equal(t, 1, a.starting())
				api.setAway(away)
				a.join("2")
				time.Sleep(25 * time.Second)
				require.Equal(t, 1, a.starting())
				time.Sleep(20 * time.Second)
				require.Equal(t, 2, a.starting(), "it is open")
				require.Equal(t, []string{"registry"}, *a.opened.Load())
				require.ErrorIs(t, a.View().Fault, away)
				require.Len(t, a.logged.AllEntries(), 2, "said once each: that requests fail, and that it is open")

				api.setAway(nil)
				a.join("3")
				time.Sleep(40 * time.Second)
				require.Empty(t, *a.opened.Load())
				require.NoError(t, a.View().Fault)
				a.join("4")
				time.Sleep(5 * time.Second)
				require.Len(t, api.held(), 1, "the starts under way count")
				require.LessOrEqual(t, a.starting(), 3, "later pods are held")
				_ = ticket
			})
		})
	}
}

// A fault after which no request was made does not count as one that lasts: else the herd that comes when the API server
// is back would not be held.
func TestAFaultThatIsOverOpensNothing(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]bool{"no pod is left": false, "a pod runs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				a := startClaiming(t, api, "a", 1)
				if runs {
					a.limiter.SetGroups(time.Now(), throttle.PodGroups{UID: "0", Groups: ofRegistry, Running: true, Ready: true})
				}
				first := a.join("1")
				time.Sleep(time.Second)
				a.end(first)
				time.Sleep(10 * time.Second)
				require.Empty(t, api.held())
				api.setAway(errors.New("connection refused"))
				second := a.join("2")
				time.Sleep(45 * time.Second)
				require.Equal(t, 1, a.starting(), "it is open")
				a.end(second)
				time.Sleep(2 * time.Second)
				api.setAway(nil)
				time.Sleep(time.Minute)
				a.join("3")
				a.join("4")
				time.Sleep(5 * time.Second)
				require.Equal(t, 1, a.starting())
			})
		})
	}
}

// A fault that lasts is forgotten while no pod needs a slot: the next herd waits for OpenAfter again.
func TestAFaultThatLastsHoldsEachHerdForOpenAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.setAway(apierrors.NewForbidden(leaseResource, "", errors.New("no role")))
		a := startClaiming(t, api, "a", 1)
		for _, pod := range []string{"1", "2"} {
			ticket := a.join(pod)
			time.Sleep(25 * time.Second)
			require.Zero(t, a.starting())
			time.Sleep(20 * time.Second)
			require.Equal(t, 1, a.starting(), "it is open")
			require.Error(t, a.View().Fault)
			a.end(ticket)
			time.Sleep(time.Minute)
			require.NoError(t, a.View().Fault, "it is not known")
		}
	})
}

// A write that failed opens nothing while others hold all slots, so that nothing is to be written; one that fails
// while slots are free opens the policy.
func TestAWriteThatFailsCountsWhileThereIsSomethingToWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		a, b := startClaiming(t, api, "a", 1), startClaiming(t, api, "b", 1)
		api.denied = "b"
		b.join("2")
		time.Sleep(3 * time.Second)
		require.NotZero(t, b.View().Failures)
		ticket := a.join("1")
		time.Sleep(5 * time.Minute)
		require.Equal(t, 1, a.starting())
		require.Zero(t, b.starting())
		a.end(ticket)
		time.Sleep(time.Minute)
		require.Equal(t, 1, b.starting(), "it is open")
	})
}

// Another holder takes the Lease of a start.
func TestASlotThatIsTakenAwayIsNotReliedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		a := startClaiming(t, api, "a", 1)
		a.join("1")
		time.Sleep(time.Second)
		api.mu.Lock()
		for name, l := range api.leases {
			stolen := l.DeepCopy()
			*stolen.Spec.HolderIdentity = "somebody"
			api.leases[name] = api.recordLocked(stolen)
		}
		api.mu.Unlock()
		time.Sleep(renewEvery)
		require.EqualValues(t, 1, a.View().Lost)
		require.Zero(t, a.View().Groups[0].Held)
		a.join("2")
		time.Sleep(20 * time.Second)
		require.Equal(t, 1, a.starting())
	})
}

// A policy that is gone needs no slots; a lower limit is in force for new starts.
func TestALimitIsLoweredAndThePolicyDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		a := startClaiming(t, api, "a", 3)
		var tickets []*throttle.Ticket
		for i := range 6 {
			tickets = append(tickets, a.join(fmt.Sprint(i)))
		}
		time.Sleep(3 * time.Second)
		require.Equal(t, 3, a.starting())
		a.SetPolicies(map[string]Policy{"registry": {UID: "policy-uid", Slots: 1, OpenAfter: 30 * time.Second}})
		ended := 0
		for _, ticket := range tickets {
			if state, _ := ticket.Status(); state == throttle.Starting && ended < 2 {
				ticket.End(time.Now(), reasons.Ready)
				a.Wake()
				ended++
				time.Sleep(2 * time.Second)
				require.Equal(t, 3-ended, a.starting())
			}
		}
		a.limiter.SetPolicies(time.Now(), nil)
		a.SetPolicies(nil)
		time.Sleep(5 * time.Second)
		require.Equal(t, 4, a.starting(), "the policy holds no pod any more")
		require.Empty(t, api.held())
	})
}

func TestLeasesAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	long := throttle.GroupKey{Policy: string(make([]byte, 0, 253)), Group: "image:1"}
	for range 253 {
		long.Policy += "p"
	}
	id := identify("uid", long)
	assert.NotEqual(t, id, identify("other", long))
	assert.NotEqual(t, id, identify("uid", throttle.GroupKey{Policy: long.Policy, Group: "image:2"}))
	taken := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	l := newLease(demand{key: long, policy: Policy{UID: "uid"}}, 999, version{"lease-uid", "17"}, "node", taken, taken.Add(time.Minute))
	assert.LessOrEqual(t, len(l.Name), 253)
	assert.Equal(t, taken, l.Spec.AcquireTime.Time)
	assert.Equal(t, taken.Add(time.Minute), l.Spec.RenewTime.Time)
	s, ok := readSlot(l, taken)
	require.True(t, ok)
	assert.Equal(t, &slot{id: id, n: 999, name: l.Name, holder: "node", version: version{"lease-uid", "17"}, lasts: lasts, seen: taken}, s)
	delete(l.Labels, SlotLabel)
	_, ok = readSlot(l, taken)
	assert.False(t, ok)
}

// A store that is restored from a backup has Leases of lower versions than those that were
// seen, and knows nothing of those that came since.
func TestSlotsCanBeTakenAfterTheStoreWasRestored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		backup func(a *claiming) *throttle.Ticket
		change func(api *fakeAPI, a *claiming, first *throttle.Ticket)
	}{
		"to before a slot was given back": {
			backup: func(a *claiming) *throttle.Ticket { return a.join("0") },
			change: func(_ *fakeAPI, a *claiming, first *throttle.Ticket) { a.end(first) },
		},
		"to before it was taken": {
			backup: func(*claiming) *throttle.Ticket { return nil },
			change: func(_ *fakeAPI, a *claiming, _ *throttle.Ticket) { a.join("0") },
		},
		"to before it was renewed": {
			backup: func(a *claiming) *throttle.Ticket { return a.join("0") },
			change: func(*fakeAPI, *claiming, *throttle.Ticket) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				a, b := startClaiming(t, api, "a", 1), startClaiming(t, api, "b", 1)
				first := c.backup(a)
				time.Sleep(time.Second)
				backup := api.backup()
				c.change(api, a, first)
				time.Sleep(15 * time.Second)
				api.restore(backup)
				for i := range 6 {
					of := []*claiming{a, b}[i%2]
					of.join(fmt.Sprint(i + 1))
				}
				started := map[*throttle.Ticket]bool{}
				for range 300 {
					time.Sleep(time.Second)
					require.LessOrEqual(t, len(api.held()), 1)
					for _, of := range []*claiming{a, b} {
						for _, v := range of.limiter.Snapshot(time.Now()).Starting {
							ticket := of.limiter.Lookup(v.UID)
							started[ticket] = true
							of.end(ticket)
						}
					}
				}
				require.GreaterOrEqual(t, len(started), 6, "everybody had a turn")
				require.LessOrEqual(t, a.View().Conflicts+b.View().Conflicts, uint64(20))
				require.Empty(t, api.held())
			})
		})
	}
}

// overtaken is a limiter at which something happens right after its groups were looked at.
type overtaken struct {
	*throttle.Limiter
	happens func(now time.Time)
}

func (o *overtaken) Groups(now time.Time) []throttle.GroupView {
	defer o.happens(now)
	return o.Limiter.Groups(now)
}

// A claim that no start has used for a while is given back. A pod that is admitted on it between
// the look at the group and that moment keeps it.
func TestAClaimThatIsUsedAtTheLastMomentIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		a := newClaiming(t, api, "a", 2)
		var unusedSince atomic.Pointer[time.Time]
		a.options.Limiter = &overtaken{Limiter: a.limiter, happens: func(now time.Time) {
			if at := unusedSince.Load(); at != nil && now.Sub(*at) >= unusedAlone && unusedSince.CompareAndSwap(at, nil) {
				late := a.limiter.Join(now, throttle.Request{UID: "late", Name: "late", Groups: ofRegistry})
				assert.True(t, late.TryStart(now).Admitted)
			}
		}}
		a.run()
		first := a.join("first")
		time.Sleep(time.Second)
		a.end(first) // the other slot is free, so this one is kept for the next pod
		ended := time.Now()
		time.Sleep(unusedAlone / 2)
		unusedSince.Store(&ended)
		time.Sleep(unusedAlone)
		require.Nil(t, unusedSince.Load())
		require.Equal(t, 1, a.starting())
		require.Equal(t, []string{"a"}, api.held())
		require.Equal(t, 1, api.written(), "it was neither given back nor taken again")
		require.Zero(t, a.View().Calls[string(releaseSlot)])

		a.end(a.limiter.Lookup("late"))
		time.Sleep(5 * time.Second)
		require.Empty(t, api.held())
	})
}
