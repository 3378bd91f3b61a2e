package pods

import (
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// Annotations and labels of the kubelet and the DaemonSet controller, seen through NRI before the pod watch knows
// the pod.
const (
	annotationSource        = "kubernetes.io/config.source"
	sourceAPI               = "api"
	labelTemplateGeneration = "pod-template-generation"
)

// Exemption returns why a pod does not wait; empty: it is not exempt. pod is what the pod watch knows, if known.
// Otherwise the runtime's report p must do.
func Exemption(exempt v1alpha1.Exemptions, p Pod, pod podwatch.Pod, known bool) string {
	if exempt.ExemptsNamespace(p.Namespace) {
		return "Namespace"
	}
	if p.Static {
		return "Static"
	}
	// Any user may set the label, so it counts only in the namespaces that the administrator lists.
	if !known && p.Template && exempt.DaemonSets.Has(p.Namespace) {
		return "DaemonSet"
	}
	if !known {
		return ""
	}
	critical := pod.PriorityClassName == "system-node-critical" || pod.PriorityClassName == "system-cluster-critical"
	switch {
	case pod.Static:
		return "Static"
	case critical && exempt.CriticalPods.Has(p.Namespace):
		return "Critical"
	case pod.DaemonSet && exempt.DaemonSets.Has(p.Namespace):
		return "DaemonSet"
	case pod.SkipAnnotation && exempt.AllowSkipAnnotation:
		return "Annotation"
	}
	return ""
}
