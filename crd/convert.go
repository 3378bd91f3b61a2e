package crd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Converted is an object of another project in the words of this one.
type Converted struct {
	// Object is the whole new object, and valid unless Object.Err is set. Content is what a file has of it.
	Object
	Content map[string]any
	// Notes say what differs from what the other project did, and what was left out.
	Notes []string
}

// Convert translates each object in data, which is YAML or JSON: the PacemakerConfigs of PodPacemaker, and the Throttles and
// ClusterThrottles of kube-throttler. An object of another kind, or whose translation is not valid, has an Err. Convert
// returns nothing for data without an object.
func Convert(data []byte) (all []Converted) {
	for _, d := range documents(data) {
		var c Converted
		if c.Err = d.err; c.Err == nil {
			c.convert(d.object)
		}
		all = append(all, c)
	}
	return all
}

// isConvertible reports whether an object is of a kind that Convert translates.
func isConvertible(object map[string]any) bool {
	version, _ := object["apiVersion"].(string)
	switch group, _, has := strings.Cut(version, "/"); object["kind"] {
	case v1alpha1.Kind:
		return has && group != v1alpha1.GroupVersion.Group
	case "Throttle", "ClusterThrottle":
		return true
	default:
		return false
	}
}

func (c *Converted) convert(object map[string]any) {
	u := unstructured.Unstructured{Object: object}
	spec, _, _ := unstructured.NestedMap(object, "spec") // if it is no mapping, the new object lacks what it needs
	name := u.GetName()
	c.Kind, c.Name = u.GetKind(), name
	switch {
	case !isConvertible(object):
		c.Err = fmt.Errorf("%s %s: neither a PacemakerConfig of PodPacemaker nor a Throttle of kube-throttler", u.GetAPIVersion(), c.Kind)
		return
	case c.Kind == v1alpha1.Kind:
		c.config(spec)
	default:
		if c.Kind == "Throttle" && u.GetNamespace() != "" {
			name = u.GetNamespace() + "-" + name // a StartPolicy has no namespace
		}
		spec = c.throttle(spec, cmp.Or(u.GetNamespace(), "default"))
	}
	kind := v1alpha1.Kind
	if c.Kind != kind {
		kind = v1alpha1.PolicyKind
	}
	c.Content = map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}
	c.read(c.Content)
}

func (c *Converted) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// config notes what differs. The fields are the same.
func (c *Converted) config(spec map[string]any) {
	if _, set, _ := unstructured.NestedFieldNoCopy(spec, "throttleConfig", "loadAvg", "incrementBy"); set {
		c.note("spec.throttleConfig.loadAvg.incrementBy: fades over a minute here, and not within 5 s, so the same number holds more pods: lower it")
	}
	c.note("a start lasts until the pod is ready, with or without a startup probe, and restarts are paced too")
}

// throttle returns the spec of a StartPolicy for the spec of a Throttle of a namespace, or of a ClusterThrottle.
func (c *Converted) throttle(spec map[string]any, namespace string) map[string]any {
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		switch field {
		case "selector", "threshold", "temporaryThresholdOverrides":
		case "throttlerName":
			c.note("spec.throttlerName: left out: every daemon without an instance follows the policy")
		default:
			c.note("spec.%s: left out: it means nothing here", field)
		}
	}
	c.note("counts the pods of each node, not those of the cluster: divide the limits by the number of nodes, or keep kube-throttler for a sum over the cluster")
	c.note("holds pods on their node, after they are scheduled")
	limits, overrides := c.limits(spec["threshold"]), []any{}
	given, _ := spec["temporaryThresholdOverrides"].([]any)
	for _, one := range given {
		from, _ := one.(map[string]any)
		override := map[string]any{"limits": c.limits(from["threshold"])}
		for _, field := range []string{"begin", "end"} {
			if at, set := from[field]; set {
				override[field] = at
			}
		}
		overrides = append(overrides, override)
	}
	policy := map[string]any{"selector": map[string]any{"terms": c.terms(spec, namespace)}, "limits": limits}
	if len(overrides) > 0 {
		policy["temporaryOverrides"] = overrides
	}
	return policy
}

// terms returns the terms of a selector. Those of a Throttle select pods of its own namespace only.
func (c *Converted) terms(spec map[string]any, namespace string) (terms []any) {
	selector, _ := spec["selector"].(map[string]any)
	given, _ := selector["selecterTerms"].([]any) // as kube-throttler spells it
	if len(given) == 0 {
		given, _ = selector["selectorTerms"].([]any)
	}
	for _, one := range given {
		from, _ := one.(map[string]any)
		term := map[string]any{}
		for _, field := range []string{"podSelector", "namespaceSelector"} {
			if value, set := from[field]; set {
				term[field] = value
			}
		}
		if c.Kind == "Throttle" {
			term["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}}
		}
		terms = append(terms, term)
	}
	return terms
}

// limits returns the limits of a threshold.
func (c *Converted) limits(threshold any) map[string]any {
	from, _ := threshold.(map[string]any)
	running := map[string]any{}
	if pods, set, _ := unstructured.NestedFieldNoCopy(from, "resourceCounts", "pod"); set {
		running["pods"] = pods
	}
	if requests, set := from["resourceRequests"]; set {
		running["requests"] = requests
	}
	return map[string]any{"running": running}
}
