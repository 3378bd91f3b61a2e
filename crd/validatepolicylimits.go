package crd

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

const (
	maxResources  = 16
	maxPolicyPods = 100_000
)

func validateLimits(c checker, l v1alpha1.PolicyLimits) {
	c.anyOf("must set starting, running or pacer", l.Starting != nil, l.Running != nil, l.Pacer != nil)
	validateBound(c.at("starting"), l.Starting)
	validateBound(c.at("running"), l.Running)
	if l.Pacer != nil {
		validatePacer(c.at("pacer"), l.Pacer)
	}
}

func validateBound(c checker, b *v1alpha1.PodBound) {
	if b == nil {
		return
	}
	c.anyOf("must set pods, requests or both", b.Pods != nil, b.Requests != nil)
	c.whole("pods", b.Pods, 0, maxPolicyPods)
	c = c.at("requests")
	c.anyOf("must have at least one resource", b.Requests == nil, len(b.Requests) > 0)
	if !c.atMost(maxResources, len(b.Requests)) {
		return
	}
	for _, name := range sortedKeys(b.Requests) {
		if len(validation.IsQualifiedName(name)) > 0 || !requestable(name) {
			c.invalid(name, "", "every key must be cpu, memory, ephemeral-storage, a name like hugepages-2Mi, or one with a domain like nvidia.com/gpu")
		}
		amount := b.Requests[name]
		if _, err := amount.Milli(); err != nil {
			c.add(field.Invalid(c.path.Key(name), string(amount), "must be an amount from 0 to 999Ti, like 2, 200m or 1.5Gi"))
		}
	}
}

// requestable reports whether a pod can request a resource of this name, as the API server has it.
func requestable(name string) bool {
	return strings.Contains(name, "/") || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) ||
		slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}, corev1.ResourceName(name))
}

func validatePacer(c checker, p *v1alpha1.Pacer) {
	if (p.Exponential == nil) == (p.Linear == nil) {
		c.add(field.Forbidden(c.path, "must set one of exponential and linear"))
	}
	if e, c := p.Exponential, c.at("exponential"); e != nil {
		c.whole("minInitial", &e.MinInitial, 1, maxPolicyPods)
		c.whole("maxStagger", &e.MaxStagger, 1, maxPolicyPods)
		c.decimal("multiplier", &e.Multiplier, multiplier)
	}
	if l, c := p.Linear, c.at("linear"); l != nil {
		c.whole("step", &l.Step, 1, maxPolicyPods)
		c.whole("maxStagger", &l.MaxStagger, 1, maxPolicyPods)
	}
}

func validateOverrides(c checker, all []v1alpha1.TemporaryOverride) {
	if !c.atMost(maxOverrides, len(all)) {
		return
	}
	for i, o := range all {
		c := c.index(i)
		begin, end := c.moment("begin", o.Begin), c.moment("end", o.End)
		if !begin.IsZero() && !end.IsZero() && end.Before(begin) {
			c.at("end").invalid(string(*o.End), "", "must not be before begin")
		}
		validateLimits(c.at("limits"), o.Limits)
	}
}

// moment checks an optional moment. It returns the zero time if there is none.
func (c checker) moment(name string, m *v1alpha1.Moment) time.Time {
	if m == nil {
		return time.Time{}
	}
	at, err := m.Parse()
	switch {
	case utf8.RuneCountInString(string(*m)) > maxMoment:
		c.add(field.TooLongCharacters(c.path.Child(name), string(*m), maxMoment))
	case err != nil:
		c.at(name).invalid(string(*m), "", `must be a moment as in RFC 3339, like "2026-11-27T00:00:00+01:00"`)
	}
	return at
}
