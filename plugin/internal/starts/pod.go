package starts

import (
	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Pod is what the lock of the Starts guards of a pod. There is one for each pod that the runtime, a hook, the waiting
// room or the API server has told of. An unknown pod is nil. A Pod has no lock, reads no clock and no file.
//
// Kept elsewhere, by UID, because no decision needs it, it outlives the pod, or others guard it:
//   - the pod as the API server reports it: package podwatch has it, and a decision gets a copy, so that the lock is not
//     held while it is asked for;
//   - the pod's counts in its groups, and the last 256 starts that have ended: the limiter;
//   - processes that wait, and hooks that failed: package waiting;
//   - what was last logged of the pod: package observe;
//   - learned costs: package learning, by kind.
type Pod struct {
	Identity
	reported bool // the runtime or a hook has told of it, and it was not forgotten since
	known    bool // the pod watch has reported it, and not yet that it has ended or is gone
	inRuntime

	// What policies and startAfter say of it.
	matched  matched
	selected []string // the entries of startAfter with a selector that select the pod by the labels of its sandbox

	ticket *throttle.Ticket // of the latest start; nil if there was none
	shadow *shadow          // the latest start that continued at once in the mode Shadow; nil if there was none
	asks   asking           // how long the limiter has not admitted it
	course *course          // what the loop measures of the start; nil if none is measured. Only the loop uses it, without the lock
}

// inRuntime is what the runtime has reported of a pod.
type inRuntime struct {
	cgroup      string                // the parent of its containers' cgroups
	sandbox     string                // the ID of the present one; empty if there is none
	lastSandbox string                // the ID of the latest one; empty if it was refused
	noGate      string                // why no hook may wait in the present sandbox; empty if one may
	containers  map[string]*container // by ID
	exits       map[string]exits      // by the name of the container, in the present sandbox
	heldBack    []heldBack            // containers that the daemon held back in this sandbox and that have not begun to run since, in the order in which kubelet asked first
	undone      string                // the name of the container that was made last, if it ended without having run
}

// Identity is who a pod is, as the runtime, a hook or the waiting room says.
type Identity struct {
	UID, Namespace, Name string
	Static               bool // kubelet has the pod from a source of its own, by the sandbox
	Template             bool // the sandbox has the label of a DaemonSet's pod
}

// NamespacedName returns "namespace/name".
func (p Identity) NamespacedName() string { return p.Namespace + "/" + p.Name }

// NameOf returns "namespace/name" of the pod of a sandbox.
func NameOf(sandbox *api.PodSandbox) string { return sandbox.GetNamespace() + "/" + sandbox.GetName() }

// Key returns the pod's UID, or "namespace/name" if a client of the runtime set no UID.
func Key(sandbox *api.PodSandbox) string {
	if uid := sandbox.GetUid(); uid != "" {
		return uid
	}
	return NameOf(sandbox)
}

// Annotations and labels of kubelet and the DaemonSet controller, seen through NRI before the pod watch knows
// the pod.
const (
	annotationSource        = "kubernetes.io/config.source"
	sourceAPI               = "api"
	labelTemplateGeneration = "pod-template-generation"
)

// identify returns who the pod of a sandbox is. A tenant may set any number of labels and annotations, so it keeps only
// what those say that pacing needs.
func identify(sandbox *api.PodSandbox) Identity {
	source := sandbox.GetAnnotations()[annotationSource]
	_, template := sandbox.GetLabels()[labelTemplateGeneration]
	return Identity{
		UID: Key(sandbox), Namespace: sandbox.GetNamespace(), Name: sandbox.GetName(),
		Static: source != "" && source != sourceAPI, Template: template,
	}
}

func newPod(who Identity) *Pod { return &Pod{Identity: who, inRuntime: nothingReported()} }

func nothingReported() inRuntime {
	return inRuntime{containers: map[string]*container{}, exits: map[string]exits{}}
}

// inShadow returns the pod's latest start if it continued at once in the mode Shadow, or nil.
func (p *Pod) inShadow() *shadow {
	if p.shadow == nil || p.shadow.ticket != p.ticket {
		return nil
	}
	return p.shadow
}

// lives reports whether the pod's latest start waits or is under way.
func (p *Pod) lives() bool {
	state, _ := p.ticket.Status()
	return state == throttle.Waiting || state == throttle.Starting
}

// isLeft reports whether anything is left of the pod: a sandbox, a container, or a start that waits or is under way.
func (p *Pod) isLeft() bool { return p.lives() || p.sandbox != "" || len(p.containers) > 0 }

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
