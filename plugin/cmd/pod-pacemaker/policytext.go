package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// policyText explains a valid policy.
func policyText(now time.Time, policy *v1alpha1.StartPolicy) string {
	spec, of := policy.Spec, "all its pods together"
	if spec.GroupBy != "" {
		of = "each group of pods with the same " + spec.GroupBy
	}
	where := "on each node"
	if spec.GetScope() == v1alpha1.ScopeCluster {
		where = "in the cluster"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%q, for %s\nOf %s, %s: %s.", policy.Name, nodesText(spec.NodeSelector), of, where, limitsText(spec.Limits))
	if unknown := crd.UnknownField(spec.GroupBy); unknown != "" {
		fmt.Fprintf(&text, "\nWarning: no pod has %s, and the policy does not hold a pod in which groupBy finds nothing.", unknown)
	}
	overridden := false
	for _, o := range spec.TemporaryOverrides {
		if o.End != nil && now.After(o.End.Time()) {
			continue
		}
		fmt.Fprintf(&text, "\n%s: %s.", periodText(o), limitsText(o.Limits))
		overridden = overridden || !now.Before(o.Begin.Time())
	}
	if overridden {
		fmt.Fprintf(&text, "\nAt present: %s.", limitsText(startpolicy.Compile(policy).LimitsAt(now).Limits))
	}
	return text.String()
}

// periodText says when an override is in force.
func periodText(o v1alpha1.TemporaryOverride) string {
	switch {
	case o.Begin != nil && o.End != nil:
		return fmt.Sprintf("From %s to %s", *o.Begin, *o.End)
	case o.Begin != nil:
		return fmt.Sprintf("From %s on", *o.Begin)
	case o.End != nil:
		return fmt.Sprintf("To %s", *o.End)
	}
	return "Always"
}

// limitsText describes the limits of a policy or an override.
func limitsText(l v1alpha1.PolicyLimits) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	for _, bound := range []struct {
		what string
		*v1alpha1.PodBound
	}{{"starting", l.Starting}, {"running", l.Running}} {
		if bound.PodBound == nil {
			continue
		}
		switch {
		case bound.Pods == nil:
		case *bound.Pods == 0:
			add("0 %s at a time (holds every pod)", bound.what)
		default:
			add("%d %s at a time", *bound.Pods, bound.what)
		}
		for _, name := range slices.Sorted(maps.Keys(bound.Requests)) {
			add("%s of %s %s at a time", bound.Requests[name], name, bound.what)
		}
	}
	if p := l.Pacer; p != nil && p.Exponential != nil {
		add("%d first, then %s for each that is ready, until %d are", p.Exponential.MinInitial, p.Exponential.Multiplier, p.Exponential.MaxStagger)
	} else if p != nil {
		add("in steps of %d, until %d are ready", p.Linear.Step, p.Linear.MaxStagger)
	}
	return strings.Join(parts, ", ")
}

// policiesTable lists the groups of the policies in force.
func policiesTable(all []admin.Policy) []string {
	t := table{{"POLICY", "GROUP", "WAITING", "STARTING", "RUNNING", "THROTTLED BY"}}
	for _, p := range all {
		name, fault := p.Name, ""
		if p.Fault != "" {
			fault = "HOLDS NO POD: " + p.Fault
		}
		if len(p.Groups) == 0 {
			t.add(name, "-", "0", "0", "0", fault)
		}
		for _, g := range p.Groups {
			t.add(name, g.Group, fmt.Sprint(g.Waiting), useText(g.Used.Starting), useText(g.Used.Running),
				cmp.Or(fault, strings.Join(g.Throttled, ", ")))
			name, fault = "", "" // only in the first row of a policy
		}
		if more := p.GroupCount - len(p.Groups); more > 0 && len(p.Groups) > 0 {
			t.add("", fmt.Sprintf("and %d more", more), "", "", "", "")
		}
	}
	return t.lines()
}

// useText returns how many pods there are, and what they request.
func useText(u v1alpha1.PodUse) string {
	text := fmt.Sprint(u.Pods)
	if len(u.Requests) > 0 {
		text += " (" + pairsText(u.Requests, " ") + ")"
	}
	return text
}
