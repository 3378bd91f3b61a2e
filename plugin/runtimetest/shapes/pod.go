package shapes

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Pod is a pod, and what its containers do.
type Pod struct {
	Name, Namespace string
	At              time.Duration // when it is created
	Priority        int32
	Owner           string // a kind; empty: none
	Policy          corev1.RestartPolicy
	Inits           []time.Duration // how long each init container runs
	Containers      int
	Ready           time.Duration // how long a container takes until a probe succeeds
	Cores           float64       // that each of its processes uses while the pod starts
	Probed          bool
	Startup         *Probe
	Liveness        *Probe
	Hangs           int  // how many of its first processes never answer, until a probe kills them. Only with one container
	Grouped         bool // by the StartPolicy. Only if it ends
	Sidecars        int  // native ones, before the init containers
	Pull            time.Duration
	Crashes         int           // how many times its container exits instead of getting ready. Only with one container
	Runs            time.Duration // how long it runs until it succeeds; 0: for good
	Environment     int           // bytes of each container
	Labels          int           // bytes of labels and annotations
	Rejected        int           // how many of its first containers another plugin rejects
	Deleted         time.Duration // when it is deleted, after At; 0: never
}

func (p Pod) String() string {
	words := []string{fmt.Sprintf("pod %s/%s", p.Namespace, p.Name)}
	word := func(given bool, format string, args ...any) {
		if given {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	word(p.Owner != "", "of a %s", p.Owner)
	word(p.Policy != corev1.RestartPolicyAlways, "restartPolicy %s", p.Policy)
	word(p.Priority != 0, "priority %d", p.Priority)
	word(p.Pull > 0, "pulls %s", p.Pull)
	word(len(p.Inits) > 0, "init containers of %v", p.Inits)
	word(p.Cores > 0, "uses %g CPUs", p.Cores)
	word(p.Containers > 1, "%d containers", p.Containers)
	word(p.Environment > 0, "%d KiB of environment", p.Environment>>10)
	word(p.Labels > 0, "%d KiB of labels and annotations", p.Labels>>10)
	word(p.Rejected > 0, "another plugin rejects %d containers", p.Rejected)
	word(p.Grouped, "of the StartPolicy")
	word(p.Sidecars > 0, "%d sidecars", p.Sidecars)
	word(p.Startup != nil, "startup probe (%s)", p.Startup)
	word(p.Liveness != nil, "liveness probe (%s)", p.Liveness)
	word(p.Hangs > 0, "hangs %d times", p.Hangs)
	word(p.Crashes > 0, "crashes %d times", p.Crashes)
	word(p.Probed, "ready %s after its start", p.Ready)
	word(!p.Probed, "no probe")
	word(p.Runs > 0, "succeeds after %s", p.Runs)
	return strings.Join(words, ", ")
}

// Work is how long a start of the pod takes, at most.
func (p Pod) Work() (d time.Duration) {
	for _, init := range p.Inits {
		d += init
	}
	return d + p.Ready + p.Runs
}

// TellsReady reports whether a probe tells when the pod is ready.
func (p Pod) TellsReady() bool { return p.Probed || p.Startup != nil }

// Fails returns how many of the pod's processes end before one gets ready.
func (p Pod) Fails() int { return p.Crashes + p.Hangs }

// Exempt reports whether the pod never waits.
func (p Pod) Exempt() bool { return p.Namespace == "kube-system" }

// mostOfVariable is how many bytes of a variable's value Linux starts a process with, and a little less.
const mostOfVariable = 100 << 10

// filler fills what is large.
var filler = strings.Repeat("x", 2<<20)

// Object returns the pod as the API server has it.
func (p Pod) Object() *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.Name)},
		Spec:       corev1.PodSpec{NodeName: "node", RestartPolicy: p.Policy, Priority: new(p.Priority)},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	if p.Owner != "" {
		name := p.Name[:strings.LastIndexByte(p.Name, '-')]
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: p.Owner, Name: name, Controller: new(true)}}
	}
	if p.Labels > 0 {
		pod.Annotations, pod.Labels = map[string]string{"filler": filler[:p.Labels/2]}, map[string]string{}
		for i := range p.Labels / 2 / validation.LabelValueMaxLength {
			pod.Labels[fmt.Sprintf("filler%d", i)] = filler[:validation.LabelValueMaxLength]
		}
	}
	if p.Grouped {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "grouped", "yes")
	}
	for i := range p.Sidecars {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
			Name: fmt.Sprintf("side%d", i), Image: "side", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		})
	}
	for i := range p.Inits {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprintf("init%d", i), Image: "init"})
	}
	for i := range p.Containers {
		c := corev1.Container{
			Name: fmt.Sprintf("app%d", i), Image: "app", StartupProbe: p.Startup.object(), LivenessProbe: p.Liveness.object(),
		}
		if p.Environment > 0 {
			for from := 0; from < p.Environment; from += mostOfVariable {
				c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("FILLER%d", len(c.Env)), Value: filler[from:min(from+mostOfVariable, p.Environment)]})
			}
		}
		if p.Probed {
			c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

// Probe is a probe that kills. It begins after Delay.
type Probe struct {
	Delay, Period time.Duration
	Failures      int
}

func (p Probe) String() string {
	return fmt.Sprintf("%d failures, every %s after %s", p.Failures, p.Period, p.Delay)
}

func (p *Probe) object() *corev1.Probe {
	if p == nil {
		return nil
	}
	return &corev1.Probe{
		InitialDelaySeconds: int32(p.Delay / time.Second), PeriodSeconds: int32(p.Period / time.Second), FailureThreshold: int32(p.Failures),
	}
}

// KillsWithin is how long it takes until the probe kills a container that does not answer, at most.
func (p *Probe) KillsWithin() time.Duration {
	if p == nil {
		return 0
	}
	return p.Delay + time.Duration(p.Failures+1)*p.Period
}
