package podwatch

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
)

// Pod is what pacing needs to know of one pod, as the API server last reported it.
// It is a value; the Containers map and the Facts are shared between copies and must not be written.
//
// The status part (Phase and everything below it) is kubelet's latest report, which can be about the past:
// after a reboot of the node it describes the containers from before, until kubelet reports again.
// [Pod.Describes] tells whether it is about the containers that run now.
//
// Of a pod that would take more than 32 KiB, only the identity, Phase, Deleting and StopsBy are known: it has no Containers.
//
// What pacing has to know of a pod besides, such as another annotation, is a field here, which trim.go fills.
type Pod struct {
	// UID is the pod's uid in NRI. For a static pod that is the hash its mirror pod carries in the
	// annotation kubernetes.io/config.mirror, not the uid of the mirror pod in the API.
	UID       string
	Namespace string
	Name      string
	// Static is true of a pod from kubelet's own sources, known here by its mirror pod.
	Static bool
	// Priority is spec.priority, 0 when absent, and at most 1000000000.
	Priority          int32
	PriorityClassName string
	// RestartPolicy is spec.restartPolicy: Always, OnFailure or Never.
	RestartPolicy string
	// RuntimeClass is spec.runtimeClassName, empty when absent.
	RuntimeClass string
	// DaemonSet is true where the pod's controller is a DaemonSet of the API group apps. Any user who may make the pod
	// may claim that.
	DaemonSet bool
	// SkipAnnotation is true when the annotation [SkipAnnotation] is exactly "true".
	// Whether that counts is the administrator's choice.
	SkipAnnotation bool
	// ActiveDeadline is spec.activeDeadlineSeconds, 0 when absent.
	ActiveDeadline time.Duration
	// Probed is true when any app container or sidecar has a readiness or a startup probe,
	// so that ContainersReady says more than "runs".
	Probed bool
	// Metadata is how many bytes of labels and annotations it has.
	Metadata int
	// Patience is how soon after its start the first container that does not come up is killed, by its startup probe,
	// or else its liveness probe; 0 if none is.
	Patience time.Duration
	// Like is what makes its starts like the starts of other pods.
	Like Like
	// Containers holds every container of the spec by name; names are unique over all kinds.
	Containers map[string]Container
	// Facts are what StartPolicies need to know of the pod. They are nil until they are extracted, and if the policies
	// need none, see [Watch.ExtractFacts].
	Facts *startpolicy.Facts

	// Selected is what the function of [Watch.SelectBy] returned for the pod; nil until it has. SelectedBefore reports that an
	// earlier function returned it, if any did. Only [Watch.OnNode] sets SelectedBefore.
	Selected       []string
	SelectedBefore bool

	// Deleting is true once the pod is deleted. It is never true of a static pod: when its mirror pod is deleted, kubelet
	// creates that again.
	Deleting bool
	// StopsBy is when what still runs of the pod is killed, by the clock of the API server: when its grace period is
	// over. It is zero unless Deleting, and if no container runs.
	StopsBy time.Time
	Phase   corev1.PodPhase
	// ContainersReady is true if the pod condition of that name is. It is also true if app containers or sidecars have
	// ended for good, and the others, at least one, run and are ready. Readiness gates do not count.
	ContainersReady bool
	// AllRunning is true when every app container and sidecar runs. A container that ended and will not be
	// started again (the finished half of a Job's pod) does not count against it, but at least one must run.
	AllRunning bool
	// CrashLooping is true while kubelet holds back any container other than an ephemeral one with CrashLoopBackOff.
	CrashLooping bool
	// CannotMake is true while kubelet cannot make any container other than an ephemeral one: it cannot pull the image, or
	// the container refers to a ConfigMap or Secret that is missing.
	CannotMake bool
}

// SkipAnnotation is the annotation that asks for a pod not to be paced.
const SkipAnnotation = "pod-pacemaker.io/skip"

// Kind says which list of the pod's spec a container stands in.
type Kind uint8

// The kinds of containers. Unknown is the zero value, which no container of a Pod has.
const (
	Unknown   Kind = iota
	Init           // runs to its end before the app containers
	Sidecar        // an init container with restartPolicy Always: starts among the init containers, runs beside the app
	App            // one of spec.containers
	Ephemeral      // added to a running pod, for debugging
)

// Container is one container of a pod's spec, with what kubelet last reported of it.
type Container struct {
	Kind Kind
	// Place is its place in the spec, from 0: init containers and sidecars, then app containers.
	Place int
	// RestartPolicy is the container's own restartPolicy, empty when it follows the pod's.
	RestartPolicy string
	// ID is the runtime's id of the container that the report is about, as in NRI (without "containerd://").
	// It is empty before a container was created.
	ID string
	// Running is true while kubelet reports the container as running.
	Running bool
	// StartFailed is true if the process of the container with this ID never ran, because the runtime could not start it.
	StartFailed bool
	// OtherFault is true while kubelet reports that it could not make or start the container, for a reason that names no
	// hook and not the daemon.
	OtherFault bool
	// CrashLooping is true while kubelet holds the container back with CrashLoopBackOff. It is false for an ephemeral one.
	CrashLooping bool
	// Over is true once the container, an app container or a sidecar, has ended and kubelet does not start it again.
	Over bool
}

// IsKnown reports whether p is a pod. The zero value is not: it stands for a pod that the watch does not know.
func (p Pod) IsKnown() bool { return p.UID != "" }

// NamespacedName returns "namespace/name".
func (p Pod) NamespacedName() string { return p.Namespace + "/" + p.Name }

// KindOf returns the kind of a container. The lists of a spec are immutable except the one of ephemeral containers, so
// a container that the pod does not have is ephemeral, and Unknown only if no container of the pod is known.
func (p Pod) KindOf(container string) Kind {
	if c, listed := p.Containers[container]; listed || len(p.Containers) == 0 {
		return c.Kind
	}
	return Ephemeral
}

// Terminal reports whether the pod has ended for good: it succeeded or failed.
func (p Pod) Terminal() bool {
	return p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed
}

// StartsAgain reports whether kubelet tries again when starting the named container failed.
// When it does not, a failed start loses the container, or the pod.
//
// A container's own restartPolicy is honoured only by kubelets that know the field (for other containers than sidecars
// from 1.35 on by default), which cannot be seen here: both policies must say that it starts again. That holds for
// sidecars, too: a kubelet up to 1.32 leaves one whose start failed alone in a pod that is never restarted
// (kubernetes#132826). Restart rules by exit code are not taken into account. A container that the pod does not have is
// not started again.
//
// It is false of all containers of a Job's pod with restartPolicy OnFailure: kubelet tries again, but the Job counts that
// against its backoffLimit, which may be 0, over all its pods.
func (p Pod) StartsAgain(container string) bool {
	if p.RestartPolicy == string(corev1.RestartPolicyOnFailure) && strings.HasPrefix(p.Like.Owner, "Job/") {
		return false
	}
	c := p.Containers[container]
	switch c.Kind {
	case Init, Sidecar, App:
		return restarts(p.RestartPolicy) && (c.RestartPolicy == "" || restarts(c.RestartPolicy))
	default:
		return false
	}
}

// GetsSandboxes reports whether kubelet makes another sandbox for the pod when its present one is gone. It does not for a
// pod that is never restarted, once a container of it was made.
func (p Pod) GetsSandboxes() bool {
	return restarts(p.RestartPolicy) && !p.Deleting && !p.Terminal()
}

// HasApp reports whether one of these containers is an app container. The keys of names are their names; the values do not
// matter.
func (p Pod) HasApp(names map[string]string) bool {
	for name := range names {
		if p.Containers[name].Kind == App {
			return true
		}
	}
	return false
}

// OnlySidecars reports whether all of these containers are native sidecars. The keys of names are their names; the
// values do not matter.
func (p Pod) OnlySidecars(names map[string]string) bool {
	for name := range names {
		if p.Containers[name].Kind != Sidecar {
			return false
		}
	}
	return true
}

// HasInit reports whether the pod has an init container or a native sidecar.
func (p Pod) HasInit() bool {
	for _, c := range p.Containers {
		if c.Kind == Init || c.Kind == Sidecar {
			return true
		}
	}
	return false
}

func restarts(policy string) bool {
	return policy == string(corev1.RestartPolicyAlways) || policy == string(corev1.RestartPolicyOnFailure)
}

// Describes reports whether the pod's status is about these containers: ids maps names of containers to the runtime's
// ids. It is false as soon as kubelet's report is about another run of any of them, or about none.
func (p Pod) Describes(ids map[string]string) bool {
	for name, id := range ids {
		if c, ok := p.Containers[name]; !ok || c.ID != id {
			return false
		}
	}
	return true
}
