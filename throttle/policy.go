package throttle

import (
	"cmp"
	"math"
	"time"
)

// GroupKey names a group of a policy: pods that share their limits.
type GroupKey struct {
	// Policy is the policy's name.
	Policy string
	// Group is the value by which the policy groups its pods; empty if it does not.
	Group string
}

func (k GroupKey) compare(other GroupKey) int {
	return cmp.Or(cmp.Compare(k.Policy, other.Policy), cmp.Compare(k.Group, other.Group))
}

// Amounts are amounts of resources by name, in thousandths of the resource's unit: "cpu": 200 is 200m.
// An amount below 0 counts as 0. The caller must not change it after passing it to the limiter.
type Amounts map[string]int64

// Membership is what a pod counts for in a group.
type Membership struct {
	Key GroupKey
	// Requests are what the pod counts for, beside being one pod.
	Requests Amounts
	// Bypass reports whether the group never holds the pod, which counts in it all the same.
	Bypass bool
}

// PodGroups are the groups of a pod.
type PodGroups struct {
	UID string
	// Groups are the memberships of the pod. Of two in the same group, the first counts.
	Groups []Membership
	// Running reports whether the pod was admitted and has not finished, with or without a ticket, and Ready whether its
	// containers are ready. If Running is false, the limiter keeps what it knows of both.
	Running, Ready bool
}

// GroupLimits limits the pods of each group of a policy. The zero value limits nothing.
type GroupLimits struct {
	// Starting limits the pods of the group that start. Running limits the pods that were admitted and
	// have not finished. Overdue pods and loans may exceed Starting, but never Running.
	Starting, Running Bound
	// Pacer limits how many pods start, by how many are ready.
	Pacer Pacer
	// Claims limits the pods of the group that start at a time to as many as [Limiter.SetClaims] allows, and to none
	// before it was called for the group. An overdue pod may exceed it, a loan does not. If Claims is nil, it does not limit
	// the group.
	Claims *Claims
	// MaxWait limits the wait of each pod of the group that does not bypass it, if it is less than
	// Settings.MaxWait. If it is zero or less, only Settings.MaxWait counts.
	MaxWait time.Duration
}

// Claims says what the caller of [Limiter.SetClaims] claims, and for whom. The limiter uses only Slots, for
// GroupView.Wants.
type Claims struct {
	// Owner identifies the version of the policy that owns the slots. It is not empty.
	Owner string
	// Slots is how many pods of each group may start at a time on all nodes together. A value below 0
	// counts as 0, and a value above 1000 as 1000.
	Slots int
	// OpenAfter: when no slot could be claimed for this time, the policy holds no pod.
	OpenAfter time.Duration
}

// Bound is a limit on pods and on what they request. The zero value limits nothing.
type Bound struct {
	// Pods is how many pods there may be: any number if it is nil, none if it is zero.
	Pods *int64
	// Requests is how much of each resource they may request together. A resource that is absent is
	// not limited. A bound on a resource does not hold a pod that requests nothing of it.
	Requests Amounts
}

// Pacer limits how many pods of a group start, by how many are ready. For a pacer, a pod starts
// from its admission until it is ready or has finished, and again when it is no longer ready. The
// zero value limits nothing.
type Pacer struct {
	// MaxStagger is how many pods must be ready for the pacer to end.
	MaxStagger int
	// Step above zero makes a linear pacer: as many pods start as are missing to its next multiple.
	Step int
	// MinInitial and Multiplier make an exponential pacer: MinInitial pods start while none is ready,
	// then Multiplier for each ready pod, rounded up; at least one.
	MinInitial int
	Multiplier float64
}

// Allows returns how many pods may start at a time if a number of pods are ready. limited is false
// if any number may.
func (p Pacer) Allows(ready int) (starting int, limited bool) {
	switch {
	case ready >= p.MaxStagger:
		return 0, false
	case p.Step > 0:
		return p.Step - ready%p.Step, true
	case ready == 0:
		return max(1, p.MinInitial), true
	default:
		// 100 times 0.55 is a little more than 55 in floating point.
		exact := float64(ready) * p.Multiplier * (1 - 1e-12)
		return max(1, int(min(math.Ceil(exact), math.MaxInt32))), true
	}
}
