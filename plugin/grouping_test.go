package plugin

import (
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// enforce puts policies in force, each written as NAME and spec.
func (n *node) enforce(specs map[string]string) {
	n.t.Helper()
	text := ""
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		text += "---\napiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: " + name + "}\nspec: " + specs[name] + "\n"
	}
	found, err := crd.Parse([]byte(text))
	require.NoError(n.t, err)
	n.d.applier.setPolicies(found.Policies)
}

// factsOf sets the facts that the watch extracts from a pod.
func factsOf(labels map[string]string, requests map[string]int64) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) {
		pod.Facts = &startpolicy.Facts{Labels: labels, Requests: requests}
	}
}

// usage returns the usage of a policy's only group.
func (n *node) usage(policy string) throttle.GroupView {
	for _, v := range n.d.starts.Groups(time.Now()) {
		if v.Key.Policy == policy {
			return v
		}
	}
	return throttle.GroupView{}
}

const t1 = "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {requests: {cpu: 200m}}}}"

var ofT1 = map[string]string{"throttle": "t1"}
