package evictions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// moment keeps a test's own timer apart from that of the Watch.
const moment = time.Millisecond

func TestPreemptionsAreWatchedOnlyWhereACriticalPodIsNotAcceptedSoon(t *testing.T) {
	inWorld(t, func(w *world) {
		w.does(func() { w.w.Enter("blue") })
		w.does(func() { w.w.SetUnaccepted("soon", true) })
		w.pass(acceptedWithin - moment)
		w.does(func() { w.w.SetUnaccepted("soon", false) })
		w.pass(time.Hour)
		assert.Empty(t, w.asked(), "a healthy kubelet")

		w.does(func() { w.w.SetUnaccepted("late", true) })
		w.pass(acceptedWithin - moment)
		w.does(func() { w.w.SetUnaccepted("late", true) })
		assert.Empty(t, w.asked())
		w.pass(2 * moment)
		assert.Equal(t, watchesFor(Preemption, "blue"), w.asked(), "since the first was heard of it")
		w.does(func() { w.w.Enter("green") })
		assert.Equal(t, watchesFor(Preemption, "green"), w.asked())
		w.pass(time.Hour)
		assert.Empty(t, w.asked())
	})
}

func TestNothingIsWatchedForACriticalPodWhereNobodyWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		w.does(func() { w.w.SetUnaccepted("late", true) })
		w.pass(time.Hour)
		assert.Empty(t, w.asked())
		w.does(func() { w.w.Enter("blue") })
		assert.Equal(t, watchesFor(Preemption, "blue"), w.asked())
	})
}

func TestPreemptionsAreToldThatWereThereAndThatCome(t *testing.T) {
	inWorld(t, func(w *world) {
		early := w.takesDown(Preemption, "blue", "early")
		w.does(func() { w.w.Enter("blue"); w.w.SetUnaccepted("critical", true) })
		w.requireTakenDown("", early)
		w.pass(acceptedWithin + moment)
		late := w.takesDown(Preemption, "blue", "late")
		assert.Equal(t, []told{{early, Preemption}, {late, Preemption}}, w.takeTold())
		w.requireTakenDown(Preemption, early)
		w.requireTakenDown(Preemption, late)
		w.takesDown(Preemption, "green", "elsewhere")
		other := w.takesDown("Killing", "blue", "other")
		assert.Empty(t, w.takeTold())
		w.requireTakenDown("", other)
	})
}

// Kubelet accepts the critical pod when it gives up on one that waits, and soon there is
// often another critical pod: watches go on for a moment.
func TestPreemptionsAreWatchedForAMomentAfterTheLastIsAccepted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.does(func() {
			w.w.Enter("blue")
			w.w.SetUnaccepted("first", true)
			w.w.SetUnaccepted("second", true)
		})
		w.pass(time.Hour)
		w.does(func() { w.w.SetUnaccepted("first", false) })
		w.pass(2 * lingers)
		assert.Equal(t, watchesFor(Preemption, "blue"), w.asked(), "one is not accepted still")
		w.does(func() { w.w.SetUnaccepted("second", false) })
		w.pass(lingers - time.Second)
		seen := w.takesDown(Preemption, "blue", "seen")
		assert.Equal(t, []told{{seen, Preemption}}, w.takeTold())
		w.does(func() { w.w.SetUnaccepted("third", true) })
		w.pass(lingers + acceptedWithin)
		w.does(func() { w.w.SetUnaccepted("third", false) })
		w.pass(lingers - time.Second)
		w.requireTakenDown(Preemption, seen, "it is the same watch")
		assert.Empty(t, w.asked())
		w.pass(time.Second + moment)
		w.requireTakenDown("", seen)
		w.takesDown(Preemption, "blue", "unseen")
		assert.Empty(t, w.takeTold())
		w.pass(time.Hour)
		assert.Empty(t, w.asked())
	})
}

// Each need has its own watches, so that nothing is watched without one.
func TestEvictionsAndPreemptionsAreWatchedForThemselves(t *testing.T) {
	inWorld(t, func(w *world) {
		w.does(func() { w.w.Enter("blue"); w.w.SetPressure(true); w.w.SetUnaccepted("critical", true) })
		assert.Equal(t, watchesFor(Eviction, "blue"), w.asked())
		w.pass(acceptedWithin + moment)
		assert.Equal(t, watchesFor(Preemption, "blue"), w.asked())
		preempted := w.takesDown(Preemption, "blue", "preempted")
		gone := w.evicts("blue", "evicted")
		assert.Equal(t, []told{{preempted, Preemption}, {gone, Eviction}}, w.takeTold())
		w.does(func() { w.w.SetPressure(false) })
		w.requireTakenDown(Preemption, preempted)
		w.requireTakenDown("", gone)
		w.does(func() { w.w.SetPressure(true); w.w.SetUnaccepted("critical", false) })
		assert.Equal(t, watchesFor(Eviction, "blue"), w.asked())
		w.pass(lingers + moment)
		w.requireTakenDown("", preempted)
		w.requireTakenDown(Eviction, gone)
	})
}

func TestSooner(t *testing.T) {
	t.Parallel()
	early := time.Unix(1, 0)
	late := early.Add(time.Second)
	require.Equal(t, early, sooner(early, late))
	require.Equal(t, early, sooner(late, early))
	require.Equal(t, late, sooner(time.Time{}, late))
}
