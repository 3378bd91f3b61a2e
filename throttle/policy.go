package throttle

import (
	"cmp"
	"math"
)

// GroupKey names one group of one policy: the pods that share counters.
type GroupKey struct {
	// Policy is the policy's name.
	Policy string
	// Group is the value by which the policy groups its pods; empty where it does not.
	Group string
}

func (k GroupKey) compare(other GroupKey) int {
	return cmp.Or(cmp.Compare(k.Policy, other.Policy), cmp.Compare(k.Group, other.Group))
}

// Amounts are amounts of resources by name, in thousandths of the resource's unit: "cpu": 200
// is 200m. An amount below 0 counts as 0. The limiter keeps what it is given: it must not be
// changed afterwards.
type Amounts map[string]int64

// Membership is the part that a pod has in one group.
type Membership struct {
	Key GroupKey
	// Requests are what the pod counts for beside itself.
	Requests Amounts
	// Bypass: the group never holds the pod, which counts in it all the same.
	Bypass bool
}

// PodGroups says which groups a pod is in and what it counts for in them.
type PodGroups struct {
	UID string
	// Groups: of two parts in one group, the first counts.
	Groups []Membership
	// Running: the pod was admitted and has not finished, whether it has a ticket or not.
	// Ready: its containers are. False says nothing of a pod that the limiter admitted.
	Running, Ready bool
}

// GroupLimits bound the pods of each group of a policy. The zero value bounds nothing.
type GroupLimits struct {
	// Starting bounds the pods of the group that start, Running those that were admitted and
	// have not finished. Deadlines and loans may pass Starting, never Running.
	Starting, Running Bound
	// Pacer bounds how many start beside those that are ready.
	Pacer Pacer
	// Claims: no more pods of the group start at a time than [Limiter.SetClaims] allows;
	// none before it was called for the group. A deadline may pass it, no loan does.
	Claims bool
}

// Bound bounds pods and what they request. The zero value does not.
type Bound struct {
	// Pods is how many there may be. nil: any number; zero: none.
	Pods *int64
	// Requests is how much of each resource they may request together. One that is absent
	// is not bounded, and no bound on a resource holds a pod that requests nothing of it.
	Requests Amounts
}

// Pacer bounds how many pods of a group start, by how many of it are ready. A pod starts here
// from its admission until it is ready or has finished; one that is no longer ready starts
// again. The zero value bounds nothing.
type Pacer struct {
	// MaxStagger is how many have to be ready for the pacer to bound nothing any more.
	MaxStagger int
	// Step above zero makes a linear pacer: as many start as are missing to its next multiple.
	Step int
	// An exponential pacer starts MinInitial while none is ready, then Multiplier for each that
	// is, rounded up; at least one.
	MinInitial int
	Multiplier float64
}

// Allows gives how many may start at a time beside so many that are ready; false: any number.
func (p Pacer) Allows(ready int) (starting int, bounded bool) {
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
