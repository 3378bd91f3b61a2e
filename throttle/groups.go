package throttle

// GroupKey names one group of one policy: the pods that share counters.
type GroupKey struct {
	// Policy is the policy's name.
	Policy string
	// Group is the value by which the policy groups its pods; empty where it does not.
	Group string
}

// String says it for people.
func (k GroupKey) String() string {
	if k.Group == "" {
		return "policy " + k.Policy
	}
	return "policy " + k.Policy + " (" + k.Group + ")"
}

// Amounts are amounts of resources by name, in thousandths of the resource's unit:
// "cpu": 200 is 200m, "memory": 1000 is one byte. nil: none. A negative amount counts
// as zero, one above 1<<54 as that. The limiter keeps what it is given: it must not
// be changed afterwards.
type Amounts map[string]int64

// Membership is the part that a pod has in one group.
type Membership struct {
	Key GroupKey
	// Requests are what the pod counts for beside itself.
	Requests Amounts
	// Bypass: the group never holds the pod, which counts in it all the same.
	Bypass bool
}

// GroupLimits bound the pods of each group of a policy. The zero value bounds
// nothing.
type GroupLimits struct {
	// Starting bounds the pods of the group that start, Running those that were admitted
	// and have not finished. No deadline passes a bound of Running; it may pass one
	// of Starting, as any other limit.
	Starting, Running Bound
	// Pacer bounds how many start beside those that are ready.
	Pacer Pacer
	// Claims: no more pods of the group start at a time than [Limiter.SetClaims]
	// allows; none before it was called for the group.
	Claims bool
}

// Bound bounds pods and what they request. The zero value does not.
type Bound struct {
	// Pods is how many there may be. nil: any number; zero: none.
	Pods *int64
	// Requests is how much of each resource they may request together. One that is
	// absent is not bounded, and no bound on a resource holds a pod that requests
	// nothing of it.
	Requests Amounts
}

// GroupView is a copy of what is counted of one group.
type GroupView struct {
	Key    GroupKey
	Limits GroupLimits
	// Starting is what the pods that start use, Running what those use that were
	// admitted and have not finished: those that start, too.
	Starting, Running Usage
	// Ready is how many of those that run are ready.
	Ready int
	// Waiting is how many wait to start, those that bypass the policy too.
	Waiting int
	// Claims is how many SetClaims gave; below zero: the group is open. It means nothing
	// without GroupLimits.Claims.
	Claims int
	// Wants is how many more claims the group could use at once: so many pods would
	// start now, or when they are back within seconds, if it had them.
	Wants int
	// Throttled says which bounds are reached.
	Throttled Throttled
}

// Usage is how many pods there are, and what they request together.
type Usage struct {
	Pods     int64
	Requests Amounts
}

// Throttled says which limits of a group are reached: so much is in use that nobody
// who needs more of it is admitted.
type Throttled struct {
	Starting, Running Reached
	// Pacer and Claims: as many start as they allow.
	Pacer, Claims bool
}

// Reached says which parts of a bound are reached; Requests has every resource that
// is bounded.
type Reached struct {
	Pods     bool
	Requests map[string]bool
}
