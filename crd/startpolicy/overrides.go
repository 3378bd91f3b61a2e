package startpolicy

import (
	"cmp"
	"maps"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// override is a temporary override with parsed times. A zero time means that it has no begin, or no end.
type override struct {
	begin, end time.Time
	limits     v1alpha1.PolicyLimits
}

// active reports whether o is in force, which it is at begin and at end too.
func (o override) active(now time.Time) bool {
	return !now.Before(o.begin) && (o.end.IsZero() || !now.After(o.end))
}

// Calculated are the limits of a policy at a time.
type Calculated struct {
	// Limits are the limits in force, with the overrides. They must not be changed.
	Limits v1alpha1.PolicyLimits
	// Since is when an override last began or ended. It is zero if none has.
	Since time.Time
	// Next is when an override next begins or ends. It is zero if none will.
	Next time.Time
}

// LimitsAt returns the limits at a time. Each limit comes from the first override in force
// that sets it, or else from the policy.
func (p *Policy) LimitsAt(now time.Time) Calculated {
	var c Calculated
	var merged v1alpha1.PolicyLimits
	for _, o := range p.overrides {
		c.note(now, o.begin)
		if !o.end.IsZero() {
			c.note(now, o.end.Add(time.Nanosecond)) // it is in force at its end
		}
		if o.active(now) {
			merged = fill(merged, o.limits)
		}
	}
	c.Limits = fill(merged, p.limits)
	return c
}

// note records a moment at which the limits change.
func (c *Calculated) note(now, at time.Time) {
	switch {
	case at.After(now):
		if c.Next.IsZero() || at.Before(c.Next) {
			c.Next = at
		}
	case at.After(c.Since):
		c.Since = at
	}
}

// fill returns l with every absent limit taken from from. It changes neither.
func fill(l, from v1alpha1.PolicyLimits) v1alpha1.PolicyLimits {
	return v1alpha1.PolicyLimits{
		Starting: fillBound(l.Starting, from.Starting), Running: fillBound(l.Running, from.Running), Pacer: cmp.Or(l.Pacer, from.Pacer),
	}
}

func fillBound(b, from *v1alpha1.PodBound) *v1alpha1.PodBound {
	if b == nil || from == nil {
		return cmp.Or(b, from)
	}
	requests := map[string]v1alpha1.Quantity{}
	maps.Copy(requests, from.Requests)
	maps.Copy(requests, b.Requests)
	return &v1alpha1.PodBound{Pods: cmp.Or(b.Pods, from.Pods), Requests: requests}
}
