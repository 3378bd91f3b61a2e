package admin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Policy is a StartPolicy that applies on the node.
type Policy struct {
	Name string `json:"name"`
	// Generation is the generation of the API object; 0 for a file.
	Generation int64 `json:"generation,omitempty"`
	// Scope is Node or Cluster.
	Scope v1alpha1.PolicyScope `json:"scope"`
	// Limits are the current limits, with the overrides.
	Limits v1alpha1.PolicyLimits `json:"limits"`
	// Fault is why the policy holds no pod; absent if it holds pods.
	Fault string `json:"fault,omitempty"`
	// InvalidOverrides are the wrong fields of the overrides that are ignored, each with its path and why.
	InvalidOverrides []string `json:"invalidOverrides,omitempty"`
	// GroupCount is the number of groups that have pods. Groups are the 32 largest of them.
	GroupCount int                    `json:"groupCount"`
	Groups     []v1alpha1.PolicyGroup `json:"groups"`
}

// PolicyLimitsText describes the limits in one sentence.
func PolicyLimitsText(l v1alpha1.PolicyLimits) string {
	var parts []string
	bound := func(what string, b *v1alpha1.PodBound) {
		if b == nil {
			return
		}
		if b.Pods != nil {
			parts = append(parts, fmt.Sprintf("%d %s at a time", *b.Pods, what))
		}
		for _, name := range slices.Sorted(maps.Keys(b.Requests)) {
			parts = append(parts, fmt.Sprintf("%s of %s %s at a time", b.Requests[name], name, what))
		}
	}
	bound("starting", l.Starting)
	bound("running", l.Running)
	if p := l.Pacer; p != nil {
		if e := p.Exponential; e != nil {
			parts = append(parts, fmt.Sprintf("%d first, then %s for each that is ready, until %d are", e.MinInitial, e.Multiplier, e.MaxStagger))
		}
		if s := p.Linear; s != nil {
			parts = append(parts, fmt.Sprintf("in steps of %d, until %d are ready", s.Step, s.MaxStagger))
		}
	}
	return strings.Join(parts, ", ")
}
