package crd

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// maxStarts is the highest number of pods at a time and in a burst.
const maxStarts = 1000

func (c checker) throttle(t v1alpha1.ThrottleConfig) {
	if m, c := t.MaxConcurrent, c.at("maxConcurrent"); m != nil {
		c.anyOf("must set value or perCore", m.Value != nil, m.PerCore != nil)
		c.starts("value", m.Value)
		c.decimal("perCore", m.PerCore, perCore)
		oneOf(c, "cost", m.Cost, v1alpha1.CostPods, v1alpha1.CostCores)
	}
	if a, c := t.Adaptive, c.at("adaptive"); a != nil {
		before := len(*c.faults)
		c.decimal("targetPressure", a.TargetPressure, percentage)
		c.starts("min", a.Min)
		c.starts("max", a.Max)
		if len(*c.faults) == before && a.Min != nil && a.Max != nil && *a.Max < *a.Min {
			c.add(field.Invalid(c.path.Child("max"), *a.Max, "must not be less than min"))
		}
	}
	if r, c := t.RateLimit, c.at("rateLimit"); r != nil {
		c.at("fillFactor").anyOf(fillSpan.want, r.FillFactor != "")
		if r.FillFactor != "" {
			c.span("fillFactor", &r.FillFactor, fillSpan)
		}
		c.starts("burst", r.Burst)
	}
	if l, c := t.CPU, c.at("cpu"); l != nil {
		c.required("maxLoad", l.MaxLoad, percentage)
		c.decimal("incrementBy", l.IncrementBy, percentageAdded)
	}
	if l, c := t.IO, c.at("io"); l != nil {
		c.required("maxLoad", l.MaxLoad, percentage)
		c.decimal("incrementBy", l.IncrementBy, percentageAdded)
	}
	if l, c := t.LoadAvg, c.at("loadAvg"); l != nil {
		c.required("maxLoad", l.MaxLoad, load)
		c.decimal("incrementBy", l.IncrementBy, loadAdded)
	}
	if t.Pressure != nil {
		c.at("pressure").pressure(t.Pressure)
	}
	c.starts("maxPulling", t.MaxPulling)
	c.span("noProgressAfter", t.NoProgressAfter, loanSpan)
}

func (c checker) pressure(p *v1alpha1.Pressure) {
	c.anyOf("must set cpu, memory, io or window", p.CPU != nil, p.Memory != nil, p.IO != nil, p.Window != nil)
	if p, c := p.CPU, c.at("cpu"); p != nil {
		c.required("some", p.Some, percentage)
		c.decimal("minUtilization", p.MinUtilization, percentageAdded)
	}
	c.at("memory").stall(p.Memory)
	c.at("io").stall(p.IO)
	c.span("window", p.Window, windowSpan)
}

func (c checker) stall(s *v1alpha1.StallPressure) {
	if s != nil {
		c.anyOf("must set some or full", s.Some != nil, s.Full != nil)
		c.decimal("some", s.Some, percentage)
		c.decimal("full", s.Full, percentage)
	}
}
