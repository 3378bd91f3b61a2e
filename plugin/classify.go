package plugin

import (
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// What kubelet and the DaemonSet controller write on pods, as seen through NRI
// before the pod watch knows the pod.
const (
	annotationSource        = "kubernetes.io/config.source"
	sourceAPI               = "api"
	labelTemplateGeneration = "pod-template-generation"
)

// exemption tells why a pod is not made to wait; empty: it is. pod is what the
// watch knows of it; until it does, what the runtime tells has to do.
func exemption(exempt v1alpha1.Exemptions, r *record, pod podwatch.Pod, known bool) string {
	if exempt.ExemptsNamespace(r.namespace) {
		return "Namespace"
	}
	if r.static {
		return "Static"
	}
	// Anybody may set the label, so it says no more than the namespace lets it.
	if !known && r.template && exempt.DaemonSets.Has(r.namespace) {
		return "DaemonSet"
	}
	if !known {
		return ""
	}
	critical := pod.PriorityClassName == "system-node-critical" || pod.PriorityClassName == "system-cluster-critical"
	switch {
	case pod.Static:
		return "Static"
	case critical && exempt.CriticalPods.Has(r.namespace):
		return "Critical"
	case pod.DaemonSet && exempt.DaemonSets.Has(r.namespace):
		return "DaemonSet"
	case pod.SkipAnnotation && exempt.AllowSkipAnnotation:
		return "Annotation"
	}
	return ""
}
