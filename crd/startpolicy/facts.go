package startpolicy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"
)

// MostRequest is the most that the request of a pod for a resource counts as, in thousandths of the resource's unit: 18
// TB of memory. The sum for 500 pods does not overflow an int64.
const MostRequest int64 = 1 << 54

// Facts are what policies need to know of a pod. Their maps must not be changed. Of labels and
// groupBys they hold only those that policies name, however many the pod has.
type Facts struct {
	// Labels are the pod's labels that policies name.
	Labels map[string]string
	// Values are the values for the pod, by the groupBy. One that finds nothing has no value.
	Values map[string]string
	// Requests is what the pod requests of each resource, in thousandths of its unit. It is the
	// sum that kubelet uses: the larger of what the init containers need in turn and what the
	// containers need together, plus the pod's overhead.
	Requests map[string]int64
}

// FactsOf extracts from a pod the facts that policies need. The result shares only strings
// with the pod.
func FactsOf(pod *corev1.Pod, needs Needs) Facts {
	f := Facts{Labels: needs.LabelsOf(pod.Labels)}
	for name, amount := range resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true}) {
		milli := amount.MilliValue()
		if whole := amount.Value(); whole > MostRequest/1000 || milli > MostRequest {
			milli = MostRequest
		}
		if milli > 0 {
			if f.Requests == nil {
				f.Requests = map[string]int64{}
			}
			f.Requests[string(name)] = milli
		}
	}
	if len(needs.groupBys) == 0 {
		return f
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec})
	if err != nil {
		return f // a decoded pod can always be converted
	}
	f.Values = make(map[string]string, len(needs.groupBys))
	for groupBy := range needs.groupBys {
		if value := valueOf(groupBy, object); value != "" {
			f.Values[groupBy] = value
		}
	}
	return f
}
