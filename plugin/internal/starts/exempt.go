package starts

import (
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// isExempt reports whether a pod does not wait, by the configuration in force. pod is what the pod watch knows of it.
func (l *ledger) isExempt(p *Pod, pod podwatch.Pod) bool {
	return isExempt(l.config.Load().Spec.Exemptions, p.Identity, pod)
}

// isExempt reports whether a pod does not wait. p is what the runtime says of it, and pod what the pod watch knows.
func isExempt(exempt v1alpha1.Exemptions, p Identity, pod podwatch.Pod) bool {
	critical := pod.PriorityClassName == "system-node-critical" || pod.PriorityClassName == "system-cluster-critical"
	return exempt.ExemptsNamespace(p.Namespace) || p.Static || pod.Static ||
		critical && exempt.CriticalPods.Has(p.Namespace) ||
		// Any user may set the label of the template, so it counts only in the namespaces that the administrator lists.
		(pod.DaemonSet || !pod.IsKnown() && p.Template) && exempt.DaemonSets.Has(p.Namespace) ||
		pod.SkipAnnotation && exempt.AllowSkipAnnotation
}
