package leases

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestASlotIsTakenForAStartAndGivenBack(t *testing.T) {
	twoNodes(t, func(t *testing.T, api *fakeAPI, a, b *claiming) {
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
		require.Empty(t, api.held(), "no Lease is left")
		require.Zero(t, a.View().Failures+b.View().Failures)
		writes := api.written()
		time.Sleep(time.Hour)
		require.Equal(t, writes, api.written())
	})
}

// A claimer without work looks every few seconds. A pod that comes meanwhile does not wait for that, also if it comes
// right after a look.
func TestAWakeGetsAPodItsSlotAtOnce(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]time.Duration{"long after a look": mostPass / 2, "right after a look": leastPass / 2} {
		t.Run(name, func(t *testing.T) {
			oneNode(t, 1, func(t *testing.T, _ *fakeAPI, a *claiming) {
				time.Sleep(mostPass + since) // the first look is at zero
				a.join("1")
				time.Sleep(leastInterval / 2)
				require.Equal(t, 1, a.starting())
			})
		})
	}
}

// A daemon that is killed leaves its Leases; other nodes take them 30 s later.
func TestTheSlotsOfADeadNodeExpire(t *testing.T) {
	twoNodes(t, func(t *testing.T, api *fakeAPI, a, b *claiming) {
		a.join("1")
		time.Sleep(time.Second)
		b.join("2")
		time.Sleep(time.Second)
		a.stop() // a start is under way: its Lease stays, as after a kill
		require.Equal(t, []string{"a"}, api.held())
		time.Sleep(27 * time.Second)
		require.Zero(t, b.starting())
		time.Sleep(15 * time.Second)
		require.Equal(t, 1, b.starting())
		require.Equal(t, []string{"b"}, api.held())
	})
}

// Each start takes a slot of each policy.
func TestPodsOfTwoPoliciesGetTheirSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, team := newFakeAPI(), throttle.GroupKey{Policy: "team"}
		var nodes []*claiming
		for _, holder := range []string{"a", "b"} {
			n := newClaiming(t, api, holder, 2)
			n.setPolicies(map[string]throttle.GroupLimits{
				"registry": {Claims: &throttle.Claims{Owner: "policy-uid", Slots: 2, OpenAfter: time.Hour}},
				"team":     {Claims: &throttle.Claims{Owner: "team-uid", Slots: 1, OpenAfter: time.Hour}},
			})
			n.run()
			for _, uid := range []string{"1", "2"} {
				n.joinGroups(uid, []throttle.Membership{{Key: registry}, {Key: team}})
			}
			nodes = append(nodes, n)
		}
		for range 4 {
			time.Sleep(5 * time.Second)
			require.Equal(t, 1, nodes[0].starting()+nodes[1].starting())
			for _, n := range nodes {
				for _, ticket := range n.starts() {
					n.end(ticket)
				}
			}
		}
		time.Sleep(5 * time.Second)
		require.Empty(t, api.held())
	})
}

// The node's next daemon takes over the Leases of its starts.
func TestTheNextDaemonFindsItsLeases(t *testing.T) {
	twoNodes(t, func(t *testing.T, api *fakeAPI, a, b *claiming) {
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

// A user who may create Leases could otherwise take a slot from all nodes.
func TestALeaseOfAStrangeNameTakesNoSlot(t *testing.T) {
	oneNode(t, 1, func(t *testing.T, api *fakeAPI, a *claiming) {
		first := a.join("1")
		time.Sleep(time.Second)
		leases, err := api.List(t.Context(), metav1.ListOptions{LabelSelector: SlotLabel})
		require.NoError(t, err)
		require.Len(t, leases.Items, 1)
		strange := &leases.Items[0]
		strange.Name = "pod-pacemaker-zzz-" + strange.Labels[SlotLabel] + "-0"
		*strange.Spec.HolderIdentity = "stranger"
		_, err = api.Create(t.Context(), strange, metav1.CreateOptions{})
		require.NoError(t, err)
		a.end(first)
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{"stranger"}, api.held())
		for i := range 5 { // in any order of the list
			next := a.join(strconv.Itoa(i + 2))
			time.Sleep(3 * time.Second)
			require.Equal(t, 1, a.starting())
			a.end(next)
			time.Sleep(3 * time.Second)
		}
	})
}

// A fault that no pod asks about any more is forgotten, because it may be over.
func TestTheEndOfAFaultIsLogged(t *testing.T) {
	t.Parallel()
	for _, away := range []error{nil, errors.New("connection refused")} {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			a := startClaiming(t, api, "a", 1)
			api.setAway(errors.New("connection refused"))
			ticket := a.join("1")
			time.Sleep(10 * time.Second)
			api.setAway(away)
			if away != nil {
				a.gone(ticket, reasons.Deleted)
			}
			time.Sleep(20 * time.Second)
			logged := a.logged.AllEntries()
			require.Len(t, logged, 2)
			require.Contains(t, logged[0].Message, "cannot take or renew slots")
			require.Contains(t, logged[1].Message, "is over, or no pod needs a slot now")
		})
	}
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
			oneNode(t, 1, func(t *testing.T, api *fakeAPI, a *claiming) {
				ticket := a.join("1")
				time.Sleep(time.Second)
				require.Equal(t, 1, a.starting())
				api.setAway(away)
				a.join("2")
				time.Sleep(25 * time.Second)
				require.Equal(t, 1, a.starting())
				time.Sleep(20 * time.Second)
				require.Equal(t, 2, a.starting(), "the policy is open")
				require.Equal(t, []string{"registry"}, *a.opened.Load())
				require.ErrorIs(t, a.View().Fault, away)
				require.Len(t, a.logged.AllEntries(), 1, "the failed requests are logged once")
				require.EqualValues(t, 1, a.changes.Load(), "the open policy is reported once")

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

// A fault without a later request does not count as a lasting one. Otherwise a herd that comes when the API server is
// back would not be held.
func TestAFaultThatIsOverOpensNothing(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]bool{"no pod is left": false, "a pod runs": true} {
		t.Run(name, func(t *testing.T) {
			oneNode(t, 1, func(t *testing.T, api *fakeAPI, a *claiming) {
				if runs {
					a.runs("0")
				}
				first := a.join("1")
				time.Sleep(time.Second)
				a.end(first)
				time.Sleep(10 * time.Second)
				require.Empty(t, api.held())
				api.setAway(errors.New("connection refused"))
				second := a.join("2")
				time.Sleep(45 * time.Second)
				require.Equal(t, 1, a.starting(), "the policy is open")
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
			require.Equal(t, 1, a.starting(), "the policy is open")
			require.Error(t, a.View().Fault)
			a.end(ticket)
			time.Sleep(time.Minute)
			require.NoError(t, a.View().Fault, "no fault is known")
		}
	})
}

// A failed write does not open the policy while other nodes hold all slots, because there is nothing to write. A
// write that fails while slots are free opens it.
func TestAWriteThatFailsCountsWhileThereIsSomethingToWrite(t *testing.T) {
	twoNodes(t, func(t *testing.T, api *fakeAPI, a, b *claiming) {
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
		require.Equal(t, 1, b.starting(), "the policy is open")
	})
}

// Renewals that succeed do not hide that no slot can be taken, as with a quota of Leases.
func TestTakesThatFailOpenThePolicyWhileRenewalsSucceed(t *testing.T) {
	oneNode(t, 2, func(t *testing.T, api *fakeAPI, a *claiming) {
		a.join("1")
		time.Sleep(time.Second)
		require.Equal(t, 1, a.starting())
		api.denied = "a"
		second := a.join("2")
		time.Sleep(25 * time.Second)
		require.Equal(t, 1, a.starting())
		time.Sleep(20 * time.Second)
		require.Equal(t, 2, a.starting(), "the policy is open")
		require.ErrorContains(t, a.View().Fault, "take the Lease")
		a.end(second)
		time.Sleep(time.Minute)
		require.Empty(t, *a.opened.Load(), "nothing is to be taken")
		require.NoError(t, a.View().Fault)
	})
}

// Another holder takes the Lease of a start.
func TestAClaimThatAnotherHolderTakesIsLost(t *testing.T) {
	oneNode(t, 1, func(t *testing.T, api *fakeAPI, a *claiming) {
		a.join("1")
		time.Sleep(time.Second)
		api.mu.Lock()
		for name, l := range api.leases {
			stolen := l.DeepCopy()
			*stolen.Spec.HolderIdentity = "another"
			api.leases[name] = api.recordLocked(stolen)
		}
		api.mu.Unlock()
		time.Sleep(renewEvery)
		require.EqualValues(t, 1, a.View().Lost)
		require.Equal(t, map[string]int{"registry": 0}, a.View().Held)
		a.join("2")
		time.Sleep(20 * time.Second)
		require.Equal(t, 1, a.starting())
	})
}

// A deleted policy needs no slots. A lower limit is in force for new starts.
func TestALimitIsLoweredAndThePolicyDeleted(t *testing.T) {
	oneNode(t, 3, func(t *testing.T, api *fakeAPI, a *claiming) {
		var tickets []*throttle.Ticket
		for i := range 6 {
			tickets = append(tickets, a.join(fmt.Sprint(i)))
		}
		time.Sleep(3 * time.Second)
		require.Equal(t, 3, a.starting())
		a.setSlots(1)
		ended := 0
		for _, ticket := range tickets {
			if a.state(ticket) == throttle.Starting && ended < 2 {
				a.end(ticket)
				ended++
				time.Sleep(2 * time.Second)
				require.Equal(t, 3-ended, a.starting())
			}
		}
		a.setPolicies(nil)
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
	l := newLease(demand{id: id, key: long, owner: "uid"}, 999, version{"lease-uid", "17"}, "node", taken, taken.Add(time.Minute))
	assert.LessOrEqual(t, len(l.Name), 253)
	assert.Equal(t, taken, l.Spec.AcquireTime.Time)
	assert.Equal(t, taken.Add(time.Minute), l.Spec.RenewTime.Time)
	s, group, n := readSlot(l, taken)
	assert.Equal(t, id, group)
	assert.Equal(t, 999, n)
	assert.Equal(t, slot{name: l.Name, holder: "node", version: version{"lease-uid", "17"}, seen: taken}, s)
	delete(l.Labels, SlotLabel)
	_, _, n = readSlot(l, taken)
	assert.Negative(t, n)
}

// A store restored from a backup has Leases of older versions than those already seen. It does not have the newer
// Leases.
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
			twoNodes(t, func(t *testing.T, api *fakeAPI, a, b *claiming) {
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
						for _, ticket := range of.starts() {
							started[ticket] = true
							of.end(ticket)
						}
					}
				}
				require.GreaterOrEqual(t, len(started), 6, "every pod had a turn")
				require.LessOrEqual(t, a.View().Conflicts+b.View().Conflicts, uint64(20))
				require.Empty(t, api.held())
			})
		})
	}
}

// overtaken is a limiter in which something changes right after its groups were read.
type overtaken struct {
	*guarded
	happens func(now time.Time)
}

func (o *overtaken) Groups(now time.Time) []throttle.GroupView {
	defer o.happens(now)
	return o.guarded.Groups(now)
}

// A claim that no start has used for a while is given back. A pod may be admitted on it between the look at the group
// and that moment. Then the claim is kept.
func TestAClaimThatIsUsedAtTheLastMomentIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		a := newClaiming(t, api, "a", 2)
		var unusedSince atomic.Pointer[time.Time]
		a.options.Limiter = &overtaken{guarded: a.limiter, happens: func(now time.Time) {
			if at := unusedSince.Load(); at != nil && now.Sub(*at) >= unusedAlone && unusedSince.CompareAndSwap(at, nil) {
				a.limiter.locked(func(now time.Time, l *throttle.Limiter) {
					late := l.Join(now, throttle.Request{UID: "late", Name: "late", Groups: ofRegistry})
					assert.True(t, late.TryStart(now).Granted)
				})
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
		require.Equal(t, 1, api.written(), "the claim was neither given back nor taken again")
		require.Zero(t, a.View().Calls[string(releaseSlot)])

		a.end(a.starts()[0])
		time.Sleep(5 * time.Second)
		require.Empty(t, api.held())
	})
}

// runs makes a pod that has started run on.
func (c *claiming) runs(uid string) {
	c.limiter.locked(func(now time.Time, l *throttle.Limiter) {
		l.SetGroups(now, throttle.PodGroups{UID: uid, Groups: ofRegistry, Running: true, Ready: true})
	})
}

// claims returns how many pods the limiter lets start.
func (c *claiming) claims() int { return c.limiter.Groups(time.Now())[0].Claims }

func TestAPodThatOnlyRunsMakesNoWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newClaiming(t, newFakeAPI(), "a", 2)
		var looks atomic.Int32
		a.options.Limiter = &overtaken{guarded: a.limiter, happens: func(time.Time) { looks.Add(1) }}
		a.run()
		first := a.join("first")
		time.Sleep(time.Second)
		a.runs("first")
		a.end(first)
		time.Sleep(time.Minute)
		require.Zero(t, a.claims())
		before := looks.Load()
		time.Sleep(time.Minute)
		require.LessOrEqual(t, looks.Load()-before, int32(time.Minute/mostPass))
	})
}

func TestAClaimerThatRunsAgainTakesBackWhatItOffered(t *testing.T) {
	oneNode(t, 2, func(t *testing.T, _ *fakeAPI, a *claiming) {
		first := a.join("first")
		time.Sleep(time.Second)
		a.runs("first")
		a.end(first)
		time.Sleep(unusedAlone / 2)
		a.stop()
		require.Equal(t, 1, a.claims(), "the slot is given back, and the limiter does not know that")
		a.run()
		time.Sleep(leastPass)
		require.Zero(t, a.claims())
	})
}

func TestAnAPIServerThatIsAwayIsAskedRarelyForWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, runsOn := range map[string]bool{"the pod runs on": true, "the pod is gone": false} {
		t.Run(name, func(t *testing.T) {
			oneNode(t, 2, func(t *testing.T, api *fakeAPI, a *claiming) {
				first := a.join("first")
				time.Sleep(time.Second)
				if runsOn {
					a.runs("first")
				}
				api.setAway(errors.New("no route to host"))
				a.end(first)
				time.Sleep(time.Minute)
				before := a.View().Calls[string(lookSlots)]
				time.Sleep(time.Minute)
				asked := a.View().Calls[string(lookSlots)] - before
				require.NotZero(t, asked)
				require.LessOrEqual(t, asked, uint64(10))

				api.setAway(nil)
				time.Sleep(time.Minute)
				require.Empty(t, api.held())
			})
		})
	}
}

// offered keeps what SetClaims was called with last.
type offered map[throttle.GroupKey]int

func (offered) Groups(time.Time) []throttle.GroupView { return nil }

func (o offered) SetClaims(_ time.Time, key throttle.GroupKey, starts int) { o[key] = starts }

// A policy was deleted and made again while the API server was away. What the claimer still has of the deleted one must not
// change how many pods of the new one may start.
func TestTheClaimsOfADeletedPolicyDoNotCountForTheNextOneOfItsName(t *testing.T) {
	t.Parallel()
	for range 20 { // the order of the groups is random
		limiter, now := offered{}, time.Now()
		c := New(Options{Limiter: limiter})
		c.groups = map[string]*group{
			"old": {demand: demand{key: registry, openAfter: time.Second}, offered: -1, isSet: true},
			"new": {demand: demand{asked: true, key: registry, limit: 2, wants: 1, openAfter: time.Hour}, claims: map[int]*claim{0: {}}},
		}
		c.offer(now)
		require.Equal(t, offered{registry: 1}, limiter)
		c.health.since = now.Add(-time.Minute)
		c.offer(now)
		require.Equal(t, offered{registry: 1}, limiter, "the new policy does not open yet")
	}
}
