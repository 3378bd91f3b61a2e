package podwatch

import (
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// reasonCrashLoop is kubelet's reason for a container that waits before it is started yet again.
const reasonCrashLoop = "CrashLoopBackOff"

// cannotMake are kubelet's reasons for a container that it cannot make: not for lack of time, but because something is
// wrong with the image or with what the container refers to. ErrImagePull is none: a busy registry may be the cause.
var cannotMake = []string{
	"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "CreateContainerConfigError",
}

// reasonStartError is containerd's reason for a container whose process it could not start.
const reasonStartError = "StartError"

// cannotStart are kubelet's reasons for a container that the runtime could not make or start.
var cannotStart = []string{"CreateContainerError", "RunContainerError"}

// cached is what is kept instead of the API's pod.
type cached struct {
	metav1.ObjectMeta // namespace, name, uid and resourceVersion, which the informer reads; nothing else is set
	pod               Pod
	version           uint64 // of the extractor of its facts
}

// keep turns an API pod into a cached one before anything keeps it.
func (w *Watch) keep(object runtime.Object) *cached {
	p, _ := object.(*corev1.Pod) // the informer checks that
	facts := w.extractorNow()
	return &cached{
		version: facts.version,
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       p.Namespace,
			Name:            p.Name,
			UID:             p.UID,
			ResourceVersion: p.ResourceVersion,
		},
		pod: w.trimmed(p, facts),
	}
}

// mostKept is the most memory of a pod, in bytes. A pod of 100 containers takes 25 KiB.
const mostKept = 32 << 10

// trimmed trims p. If that panics, only the name of p is known.
func (w *Watch) trimmed(p *corev1.Pod, facts extractor) (pod Pod) {
	defer func() {
		if fault := recover(); fault != nil {
			pod = nameOf(p)
			w.options.OnPanic("podwatch", fault, logrus.Fields{"pod_namespace": pod.Namespace, "pod_name": pod.Name, "pod_uid": pod.UID})
		}
	}()
	pod = w.trim(p)
	if facts.extract != nil && pod.size() <= mostKept {
		f := facts.extract(p)
		pod.Facts = &f
	}
	if facts.selects != nil {
		pod.Selected = facts.selects(p.Namespace, p.Labels)
	}
	if pod.size() > mostKept {
		pod = Pod{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Static: pod.Static, Phase: pod.Phase, Deleting: pod.Deleting, StopsBy: pod.StopsBy, Metadata: pod.Metadata}
	}
	return pod
}

// size returns about how many bytes of memory the pod takes, without what it takes for any pod.
func (pod *Pod) size() (n int) {
	const entry = 64 // of a map, without its strings
	for name, c := range pod.Containers {
		n += 2*entry + len(name) + len(c.RestartPolicy) + len(c.ID)
	}
	for _, text := range pod.Selected {
		n += len(text)
	}
	if f := pod.Facts; f != nil {
		for _, texts := range []map[string]string{f.Labels, f.Values} {
			for key, value := range texts {
				n += entry + len(key) + len(value)
			}
		}
		for name := range f.Requests {
			n += entry + len(name)
		}
	}
	return n + len(pod.PriorityClassName) + len(pod.RuntimeClass) + len(pod.Like.Owner) + len(pod.Like.Revision)
}

// longestUID is the longest uid that kubelet may have given a static pod. Anybody can write the annotation.
const longestUID = 253

// nameOf returns the identity of p.
func nameOf(p *corev1.Pod) Pod {
	pod := Pod{UID: string(p.UID), Namespace: p.Namespace, Name: p.Name}
	if hash := p.Annotations[corev1.MirrorPodAnnotationKey]; hash != "" && len(hash) <= longestUID {
		pod.UID, pod.Static = hash, true
	}
	return pod
}

// highestPriority is the highest priority that an administrator can give to a class. Only the two system-critical classes
// have a higher one, and any user may name them.
const highestPriority = 1_000_000_000

// trim returns what pacing needs of an API pod. The result shares no memory with p but strings.
func trim(p *corev1.Pod) Pod {
	pod := nameOf(p)
	pod.PriorityClassName, pod.RestartPolicy = p.Spec.PriorityClassName, string(p.Spec.RestartPolicy)
	pod.RuntimeClass, pod.Priority = ptr.Deref(p.Spec.RuntimeClassName, ""), min(ptr.Deref(p.Spec.Priority, 0), highestPriority)
	pod.ActiveDeadline = time.Duration(ptr.Deref(p.Spec.ActiveDeadlineSeconds, 0)) * time.Second
	pod.SkipAnnotation, pod.Phase = p.Annotations[SkipAnnotation] == "true", p.Status.Phase
	if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
		group, err := schema.ParseGroupVersion(owner.APIVersion)
		pod.DaemonSet = err == nil && group.Group == "apps" && owner.Kind == "DaemonSet"
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.ContainersReady {
			pod.ContainersReady = c.Status == corev1.ConditionTrue
		}
	}
	pod.Patience, pod.Like = patience(p), likeOf(p)
	for _, texts := range []map[string]string{p.Labels, p.Annotations} {
		for key, value := range texts {
			pod.Metadata += len(key) + len(value)
		}
	}
	pod.addContainers(p)
	pod.addStop(p)
	return pod
}

// addContainers fills Containers and what follows from them: Probed, AllRunning,
// CrashLooping.
func (pod *Pod) addContainers(p *corev1.Pod) {
	spec, status := &p.Spec, &p.Status
	pod.Containers = make(map[string]Container, len(spec.InitContainers)+len(spec.Containers)+len(spec.EphemeralContainers))
	running, missing, ended, allReady := 0, 0, 0, true // of those that are meant to run as long as the pod does
	reported := map[string]*corev1.ContainerStatus{}
	for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range statuses {
			reported[statuses[i].Name] = &statuses[i]
		}
	}
	add := func(c *corev1.Container, kind Kind) {
		state, ready := pod.add(c, kind, reported[c.Name])
		switch {
		case kind != Sidecar && kind != App:
		case state.Running != nil:
			running++
			allReady = allReady && ready
		case state.Terminated == nil || !endedForGood(c, state.Terminated.ExitCode, spec.RestartPolicy):
			missing++
		default:
			ended++
			over := pod.Containers[c.Name]
			over.Over = true
			pod.Containers[c.Name] = over
		}
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		add(c, initKind(c))
	}
	for i := range spec.Containers {
		add(&spec.Containers[i], App)
	}
	for i := range spec.EphemeralContainers {
		c := (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)
		add(c, Ephemeral)
	}
	pod.AllRunning = running > 0 && missing == 0
	// kubelet counts a container that has ended for good as not ready, and so its pod.
	pod.ContainersReady = pod.ContainersReady || ended > 0 && pod.AllRunning && allReady
}

// add puts one container in the map and returns its state, and whether it is ready. reported is nil if kubelet has not
// reported the container.
func (pod *Pod) add(c *corev1.Container, kind Kind, reported *corev1.ContainerStatus) (state corev1.ContainerState, ready bool) {
	out := Container{Kind: kind, Place: len(pod.Containers), RestartPolicy: string(ptr.Deref(c.RestartPolicy, ""))}
	if reported != nil {
		state, ready = reported.State, reported.Ready
		_, out.ID, _ = strings.Cut(reported.ContainerID, "://")
		out.addFault(reported)
	}
	out.Running = state.Running != nil
	out.CrashLooping = kind != Ephemeral && state.Waiting != nil && state.Waiting.Reason == reasonCrashLoop
	pod.Containers[c.Name] = out
	if kind == Ephemeral {
		return state, ready
	}
	pod.CrashLooping = pod.CrashLooping || out.CrashLooping
	pod.CannotMake = pod.CannotMake || state.Waiting != nil && slices.Contains(cannotMake, state.Waiting.Reason)
	pod.Probed = pod.Probed || c.ReadinessProbe != nil || c.StartupProbe != nil
	return state, ready
}

// addFault fills StartFailed and OtherFault.
func (c *Container) addFault(status *corev1.ContainerStatus) {
	message := ""
	for _, state := range []*corev1.ContainerState{&status.LastTerminationState, &status.State} {
		if ended := state.Terminated; ended != nil && ended.Reason == reasonStartError && ended.ContainerID == status.ContainerID {
			c.StartFailed, message = true, ended.Message
		}
		if waits := state.Waiting; waits != nil && slices.Contains(cannotStart, waits.Reason) {
			message = waits.Message
		}
	}
	c.OtherFault = message != "" && !strings.Contains(message, " hook") && !strings.Contains(message, "pod-pacemaker: ")
}

func initKind(c *corev1.Container) Kind {
	if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
		return Sidecar
	}
	return Init
}

// endedForGood reports whether kubelet leaves a container that ended with this exit code alone. Restart rules
// can only make it start again, so a container that has any is never said to have ended for good.
func endedForGood(c *corev1.Container, exitCode int32, podPolicy corev1.RestartPolicy) bool {
	switch corev1.RestartPolicy(ptr.Deref(c.RestartPolicy, corev1.ContainerRestartPolicy(podPolicy))) {
	case corev1.RestartPolicyNever:
		return len(c.RestartPolicyRules) == 0
	case corev1.RestartPolicyOnFailure:
		return exitCode == 0 && len(c.RestartPolicyRules) == 0
	default:
		return false
	}
}
