package plugin

import (
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// factsOf sets the facts that the watch extracts from a pod.
func factsOf(labels map[string]string, requests map[string]int64) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) {
		pod.Facts = &startpolicy.Facts{Labels: labels, Requests: requests}
	}
}

const t1 = "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {requests: {cpu: 200m}}}}"
