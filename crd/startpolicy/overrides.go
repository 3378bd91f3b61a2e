package startpolicy

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// override is a temporary override with parsed times.
type override struct {
	begin, end time.Time
	limits     v1alpha1.PolicyLimits
}

// active reports whether o is in force, which it is at begin and at end too.
func (o override) active(now time.Time) bool { return !now.Before(o.begin) && !now.After(o.end) }

// readOverrides parses the times of all overrides. It ignores an override with a wrong time
// and records why.
func (p *Policy) readOverrides(path *field.Path, all []v1alpha1.TemporaryOverride) {
	for i, o := range all {
		at := path.Index(i)
		begin, ok := p.moment(at.Child("begin"), o.Begin)
		end, ok2 := p.moment(at.Child("end"), o.End)
		if ok && ok2 {
			p.overrides = append(p.overrides, override{begin: begin, end: end, limits: o.Limits})
		}
	}
}

func (p *Policy) moment(path *field.Path, text string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		p.invalid = append(p.invalid,
			fmt.Sprintf("%s: %q: must be a moment as in RFC 3339, like \"2026-11-27T00:00:00+01:00\"; the override is left out", path, text))
	}
	return at, err == nil
}

// Invalid returns what is wrong with the overrides that are ignored: for each wrong field its path and why.
func (p *Policy) Invalid() []string { return p.invalid }

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
		c.note(now, o.end.Add(time.Nanosecond)) // it is in force at its end
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
