package throttle

import "time"

// SetPolicies replaces the limits of all policies, by the policy's name. A policy that
// is absent bounds nothing. What is counted is kept, and whoever may start by the new
// limits is admitted. The limiter keeps what it is given: it must not be changed
// afterwards.
func (l *Limiter) SetPolicies(now time.Time, limits map[string]GroupLimits) {
	_, _ = now, limits
}

// SetGroups replaces the groups of a pod that waits, starts or runs: a policy or what
// it selects by has changed. It keeps its place in the queue. Of a pod that the
// limiter does not know, nothing is kept.
func (l *Limiter) SetGroups(now time.Time, uid string, groups []Membership) {
	_, _, _ = now, uid, groups
}

// SetRunning says that a pod was admitted and has not finished, whether it has a ticket
// or not, and what it counts for in which groups, which replace those it had; ready is
// whether its containers are. A pod that runs counts once, however often it
// starts anew, and no bound of Running holds it.
func (l *Limiter) SetRunning(now time.Time, uid string, groups []Membership, ready bool) {
	_, _, _, _ = now, uid, groups, ready
}

// Finished says that a pod runs no longer and will not: it succeeded, failed for good
// or is gone. Until then it counts among those that run from its admission on.
func (l *Limiter) Finished(now time.Time, uid string) {
	_, _ = now, uid
}

// SetClaims says how many pods of the group may start at a time, where its policy has
// GroupLimits.Claims. Below zero: any number, for nobody can say.
func (l *Limiter) SetClaims(now time.Time, key GroupKey, starts int) {
	_, _, _ = now, key, starts
}

// Groups gives a copy of what is counted of each group that has pods or claims, in the
// order of their keys.
func (l *Limiter) Groups(now time.Time) []GroupView {
	_ = now
	return nil
}
