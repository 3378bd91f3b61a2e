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
	if r.template && !known {
		return "DaemonSet"
	}
	if !known {
		return ""
	}
	switch {
	case pod.Static:
		return "Static"
	case pod.PriorityClassName == "system-node-critical", pod.PriorityClassName == "system-cluster-critical":
		return "Critical"
	case pod.OwnerKind == "DaemonSet":
		return "DaemonSet"
	case pod.SkipAnnotation && exempt.AllowSkipAnnotation:
		return "Annotation"
	}
	return ""
}
