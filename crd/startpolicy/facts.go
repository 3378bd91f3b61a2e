package startpolicy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"
)

// MostRequest bounds what a pod is taken to request of a resource, in thousandths of
// its unit: 18 TB of memory, which is as much as the limiter counts, see
// throttle.Amounts. The sum for 500 pods does not overflow.
const MostRequest int64 = 1 << 54

// Facts are what policies ask of a pod. They are a value whose maps must not be
// written. However much a pod has of each, they have no more than policies name.
type Facts struct {
	// Labels are those of the pod that policies name.
	Labels map[string]string
	// Values are what expressions give for it, by expression; an expression that finds
	// nothing has none.
	Values map[string]string
	// Requests is what the pod requests of cpu, memory and each resource that policies name,
	// in thousandths of its unit, as kubelet sums it up: the most of what its init containers
	// need one after the other and what its containers need together, and its overhead.
	Requests map[string]int64
}

// FactsOf takes the facts of a pod that policies need. The result shares no memory with
// the pod but strings.
func FactsOf(pod *corev1.Pod, needs Needs) Facts {
	f := Facts{Labels: needs.LabelsOf(pod.Labels)}
	for name, amount := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		milli := amount.MilliValue()
		if whole := amount.Value(); whole > MostRequest/1000 || milli > MostRequest {
			milli = MostRequest
		}
		if milli > 0 && needs.needsRequest(string(name)) {
			if f.Requests == nil {
				f.Requests = map[string]int64{}
			}
			f.Requests[string(name)] = milli
		}
	}
	expressions := needs.expressions
	if len(expressions) == 0 {
		return f
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec})
	if err != nil {
		return f // no pod that was decoded is of another form
	}
	f.Values = make(map[string]string, len(expressions))
	for text, e := range expressions {
		if value := e.Value(object); value != "" {
			f.Values[text] = value
		}
	}
	return f
}
