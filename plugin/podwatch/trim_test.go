package podwatch

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noon is the time at which the tests' containers started.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func running(name string, after time.Duration) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, ContainerID: "containerd://" + name + "-id",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(after))}},
	}
}

func ended(name string, exitCode int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, ContainerID: "containerd://" + name + "-id",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode}},
	}
}

func waiting(name, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
	}
}

func container(name string) corev1.Container { return corev1.Container{Name: name} }

func with(c corev1.Container, policy corev1.ContainerRestartPolicy) corev1.Container {
	c.RestartPolicy = &policy
	return c
}

// webPod returns a plain pod "ns/web" with one container "app", changed by each of the functions.
func webPod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid-1", ResourceVersion: "1"},
		Spec: corev1.PodSpec{
			NodeName: "node-a", RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{container("app")},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func TestTrimIdentity(t *testing.T) {
	t.Parallel()
	seconds, priority, yes := int64(90), int32(7), true
	p := webPod(func(p *corev1.Pod) {
		p.Annotations = map[string]string{SkipAnnotation: "true"}
		p.OwnerReferences = []metav1.OwnerReference{
			{Kind: "Gadget", Name: "no-controller"}, {APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: &yes},
		}
		p.Spec.ActiveDeadlineSeconds, p.Spec.Priority, p.Spec.PriorityClassName = &seconds, &priority, "high"
		p.Status.Phase = corev1.PodPending
	})
	require.Equal(t, Pod{
		UID: "uid-1", Namespace: "ns", Name: "web", Priority: 7, Metadata: len("pod-pacemaker.io/skip") + len("true"), PriorityClassName: "high", RestartPolicy: "Always",
		Like:      Like{Owner: "DaemonSet/d", Images: trim(p).Like.Images},
		DaemonSet: true, SkipAnnotation: true, ActiveDeadline: 90 * time.Second, Phase: corev1.PodPending,
		Containers: map[string]Container{"app": {Kind: App}},
	}, trim(p))

	priority = 2_000_001_000 // of system-node-critical
	require.Equal(t, int32(1_000_000_000), trim(p).Priority)
	p.Annotations[SkipAnnotation] = "True"
	require.False(t, trim(p).SkipAnnotation)
}

func TestTrimDeleting(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(noon)
	p := webPod(func(p *corev1.Pod) { p.DeletionTimestamp = &now })
	require.True(t, trim(p).Deleting)

	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "0123abcd"}
	pod := trim(p)
	require.True(t, pod.Static)
	require.Equal(t, "0123abcd", pod.UID)
	require.False(t, pod.Deleting, "a deleted mirror pod stops nothing")

	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
	require.Equal(t, "uid-1", trim(p).UID, "an empty hash names no pod")
}

func TestTrimContainers(t *testing.T) {
	t.Parallel()
	p := webPod(func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{
			container("setup"), with(container("proxy"), corev1.ContainerRestartPolicyAlways),
			with(container("once"), corev1.ContainerRestartPolicyNever),
		}
		p.Spec.Containers = []corev1.Container{container("app"), with(container("tool"), corev1.ContainerRestartPolicyOnFailure)}
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}},
		}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("setup", 0), running("proxy", 0), waiting("once", "PodInitializing")}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("app", "ContainerCreating"), running("stranger", 0)}
		p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{running("debug", 0)}
	})
	require.Equal(t, map[string]Container{
		"setup": {Kind: Init, ID: "setup-id"},
		"proxy": {Kind: Sidecar, Place: 1, RestartPolicy: "Always", Running: true, ID: "proxy-id"},
		"once":  {Kind: Init, Place: 2, RestartPolicy: "Never"},
		"app":   {Kind: App, Place: 3},
		"tool":  {Kind: App, Place: 4, RestartPolicy: "OnFailure"},
		"debug": {Kind: Ephemeral, Place: 5, Running: true, ID: "debug-id"},
	}, trim(p).Containers)
}

func TestTrimContainersReady(t *testing.T) {
	t.Parallel()
	for status, want := range map[corev1.ConditionStatus]bool{
		corev1.ConditionTrue: true, corev1.ConditionFalse: false, corev1.ConditionUnknown: false, "": false,
	} {
		require.Equal(t, want, trim(webPod(func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "load-balancer"}}
			p.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.ContainersReady, Status: status},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse},
			}
		})).ContainersReady, status)
	}
	require.False(t, trim(webPod(func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})).ContainersReady)
}

func TestTrimProbed(t *testing.T) {
	t.Parallel()
	probe := &corev1.Probe{}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"none":      {func(*corev1.Pod) {}, false},
		"liveness":  {func(p *corev1.Pod) { p.Spec.Containers[0].LivenessProbe = probe }, false},
		"readiness": {func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = probe }, true},
		"startup":   {func(p *corev1.Pod) { p.Spec.Containers[0].StartupProbe = probe }, true},
		"sidecar": {func(p *corev1.Pod) {
			c := with(container("proxy"), corev1.ContainerRestartPolicyAlways)
			c.StartupProbe = probe
			p.Spec.InitContainers = []corev1.Container{c}
		}, true},
		"ephemeral": {func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", ReadinessProbe: probe}},
			}
		}, false},
	} {
		require.Equal(t, c.want, trim(webPod(c.change)).Probed, name)
	}
}

func TestTrimCrashLooping(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"app": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("app", "CrashLoopBackOff")}
		}, true},
		"refused by a plugin": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("app", "CreateContainerError")}
		}, false},
		"init": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{container("setup")}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{waiting("setup", "CrashLoopBackOff")}
		}, true},
		"one of two": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, container("other"))
			p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("app", "CrashLoopBackOff"), running("other", 0)}
		}, true},
		"ephemeral": {func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}},
			}
			p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{waiting("debug", "CrashLoopBackOff")}
		}, false},
	} {
		require.Equal(t, c.want, trim(webPod(c.change)).CrashLooping, name)
	}
}

func TestTrimCannotMake(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{
		"ErrImagePull": false, "ImagePullBackOff": true, "CreateContainerConfigError": true,
		"CreateContainerError": false, "ContainerCreating": false, "CrashLoopBackOff": false,
	} {
		pod := trim(webPod(func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("app", reason)} }))
		require.Equal(t, want, pod.CannotMake, reason)
	}
}

// For any JSON from the API server, trim neither panics nor claims a start without support.
func FuzzTrim(f *testing.F) {
	for _, p := range []*corev1.Pod{
		webPod(),
		webPod(mirror("hash"), func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("app", reasonCrashLoop)}
		}),
		webPod(func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Spec.InitContainers = []corev1.Container{with(container("proxy"), corev1.ContainerRestartPolicyAlways), container("setup")}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{running("proxy", 0), ended("setup", 0)}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{running("app", 0)}
		}),
	} {
		seed, err := json.Marshal(p)
		require.NoError(f, err)
		f.Add(seed)
	}
	f.Add([]byte(`{"spec":{"containers":[{}]},"status":{"containerStatuses":[{"state":{"running":{}}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p corev1.Pod
		if json.Unmarshal(data, &p) != nil {
			return
		}
		pod := trim(&p)
		runs := false
		for _, c := range pod.Containers {
			require.NotEqual(t, Unknown, c.Kind)
			runs = runs || c.Running && c.Kind != Init && c.Kind != Ephemeral
		}
		require.True(t, runs || !pod.AllRunning, "no container runs")
		for name := range pod.Containers {
			require.False(t, pod.RestartPolicy == "Never" && pod.StartsAgain(name) && pod.Containers[name].Kind != Sidecar)
		}
	})
}

func TestADaemonSetIsRecognisedByItsAPIGroup(t *testing.T) {
	t.Parallel()
	yes := true
	for version, want := range map[string]bool{"apps/v1": true, "apps/v2": true, "v1": false, "apps.kruise.io/v1alpha1": false, "a/b/c": false} {
		p := &corev1.Pod{}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: "DaemonSet", Name: "d", Controller: &yes}}
		require.Equal(t, want, trim(p).DaemonSet, version)
	}
}

// For kubelet, a container that has ended is not ready.
func TestAContainerThatHasEndedForGoodNeedNotBeReady(t *testing.T) {
	t.Parallel()
	for _, serves := range []bool{true, false} {
		for policy, want := range map[corev1.RestartPolicy]bool{corev1.RestartPolicyNever: true, corev1.RestartPolicyOnFailure: true, corev1.RestartPolicyAlways: false} {
			pod := trim(webPod(func(p *corev1.Pod) {
				p.Spec.RestartPolicy = policy
				p.Spec.Containers = []corev1.Container{container("prepare"), container("serve")}
				serve := running("serve", 3)
				serve.Ready = serves
				p.Status.ContainerStatuses = []corev1.ContainerStatus{ended("prepare", 0), serve}
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}}
			}))
			require.Equal(t, want && serves, pod.ContainersReady, "%s, serves: %v", policy, serves)
		}
	}
}

// containerd and kubelet say why a container did not start; the texts are theirs.
func TestTrimFaults(t *testing.T) {
	t.Parallel()
	const mount = `failed to create containerd task: runc create failed: "/proc/bad" cannot be mounted because it is inside /proc`
	const hook = `failed to create containerd task: runc create failed: error running createRuntime hook #0: exit status 1`
	startError := func(id, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://" + id, Reason: "StartError", ExitCode: 128, Message: message}}
	}
	waits := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	for name, c := range map[string]struct {
		state, last             corev1.ContainerState
		startFailed, otherFault bool
	}{
		"ended":               {startError("1", mount), corev1.ContainerState{}, true, true},
		"reported":            {waits("RunContainerError", mount), startError("1", mount), true, true},
		"held back":           {waits("CrashLoopBackOff", "back-off 10s"), startError("1", mount), true, true},
		"a hook failed":       {waits("RunContainerError", hook), startError("1", hook), true, false},
		"only a name":         {waits("CreateContainerError", "failed to generate spec: stat /etc/webhook: no such file"), corev1.ContainerState{}, false, true},
		"rejected":            {waits("CreateContainerError", "no CPUs are left"), corev1.ContainerState{}, false, true},
		"refused":             {waits("CreateContainerError", "pod-pacemaker: waiting to start"), startError("1", mount), true, false},
		"made again":          {waits("", ""), startError("0", mount), false, false},
		"waits for its image": {waits("ErrImagePull", "not found"), corev1.ContainerState{}, false, false},
		"crashed":             {corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://1", Reason: "Error"}}, corev1.ContainerState{}, false, false},
	} {
		app := trim(webPod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://1", State: c.state, LastTerminationState: c.last}}
		})).Containers["app"]
		require.Equal(t, []bool{c.startFailed, c.otherFault}, []bool{app.StartFailed, app.OtherFault}, name)
	}
}

// The spec's lists are immutable but that of ephemeral containers.
func TestAContainerThatThePodDoesNotListIsEphemeral(t *testing.T) {
	t.Parallel()
	pod := trim(webPod())
	require.Equal(t, []Kind{App, Ephemeral}, []Kind{pod.KindOf("app"), pod.KindOf("debug")})
	require.Equal(t, Unknown, Pod{}.KindOf("app"), "no container of the pod is known")
}
