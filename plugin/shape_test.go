package plugin

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// shape is a node, its pods and what happens to them. It decides a run, but for the order in which Go runs goroutines
// that are ready at the same moment.
type shape struct {
	Seed           uint64
	RequestTimeout time.Duration // of kubelet
	Cores          int           // 0: 4
	Room           bool          // the waiting room is installed
	Limits         limits
	Running        int // how many of the pods that are Grouped run at a time, by a StartPolicy; 0: there is none
	Pods           []podShape
	Faults         []fault
}

// limits are a PacemakerConfig. A zero field is left out.
type limits struct {
	Mode                              string
	Concurrent                        int
	FillFactor                        time.Duration
	Burst                             int
	StartTimeout, MaxWait, SettleTime time.Duration
	UnfairNone                        bool // fairness: None
	AdaptiveMin, AdaptiveMax          int  // of adaptive; AdaptiveMin 0: it is not used, AdaptiveMax 0: it has none
	Signal                            throttle.Signal
	Most, Increment                   float64 // of the signal; Most 0: no limit on a signal
}

// The defaults of a PacemakerConfig.
const (
	defaultStartTimeout = 5 * time.Minute
	defaultMaxWait      = 4 * time.Minute
	defaultSettleTime   = 5 * time.Second
)

func (l limits) startTimeout() time.Duration { return cmp.Or(l.StartTimeout, defaultStartTimeout) }
func (l limits) maxWait() time.Duration      { return cmp.Or(l.MaxWait, defaultMaxWait) }
func (l limits) settleTime() time.Duration   { return cmp.Or(l.SettleTime, defaultSettleTime) }

// enforced reports whether pods wait.
func (l limits) enforced() bool { return l.Mode == "" || l.Mode == "Enforce" }

// atMost and atLeast return how many starts there may be at a time, and how many the daemon must allow if nothing but their
// number holds pods.
func (l limits) atMost() int {
	if l.AdaptiveMax > 0 {
		return min(l.Concurrent, l.AdaptiveMax)
	}
	return l.Concurrent
}

func (l limits) atLeast() int {
	if l.AdaptiveMin > 0 {
		return min(l.Concurrent, l.AdaptiveMin)
	}
	return l.Concurrent
}

// spec returns the spec of a PacemakerConfig.
func (l limits) spec() map[string]any {
	config := map[string]any{"maxConcurrent": map[string]any{"value": int64(l.Concurrent)}}
	if l.FillFactor > 0 {
		config["rateLimit"] = map[string]any{"fillFactor": inWholeUnits(l.FillFactor), "burst": int64(max(l.Burst, 1))}
	}
	if l.AdaptiveMin > 0 {
		adaptive := map[string]any{"min": int64(l.AdaptiveMin)}
		if l.AdaptiveMax > 0 {
			adaptive["max"] = int64(l.AdaptiveMax)
		}
		config["adaptive"] = adaptive
	}
	if l.Most > 0 {
		l.limitSignal(config)
	}
	spec := map[string]any{"throttleConfig": config}
	for name, d := range map[string]time.Duration{"startTimeout": l.StartTimeout, "maxWait": l.MaxWait, "settleTime": l.SettleTime} {
		if d > 0 {
			spec[name] = inWholeUnits(d)
		}
	}
	if l.Mode != "" {
		spec["mode"] = l.Mode
	}
	if l.UnfairNone {
		spec["fairness"] = "None"
	}
	return spec
}

// limitSignal adds the limit on the signal, whose name says where it stands.
func (l limits) limitSignal(config map[string]any) {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	switch name := (map[throttle.Signal]string{throttle.SignalCPU: "cpu", throttle.SignalIOWait: "io", throttle.SignalLoad: "loadAvg"})[l.Signal]; name {
	default:
		config[name] = map[string]any{"maxLoad": number(l.Most), "incrementBy": number(l.Increment)}
	case "":
		path := strings.Split(l.Signal.String(), ".")
		config[path[0]] = map[string]any{path[1]: map[string]any{path[2]: number(l.Most)}}
	}
}

// inWholeUnits returns a duration as the API takes it.
func inWholeUnits(d time.Duration) string {
	return fmt.Sprintf("%ds%dms", d/time.Second, d%time.Second/time.Millisecond)
}

func (l limits) String() string {
	var words []string
	word := func(given bool, format string, args ...any) {
		if given {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	word(true, "maxConcurrent %d", l.Concurrent)
	word(l.FillFactor > 0, "one start per %s, burst %d", l.FillFactor, max(l.Burst, 1))
	word(l.StartTimeout > 0, "startTimeout %s", l.StartTimeout)
	word(l.MaxWait > 0, "maxWait %s", l.MaxWait)
	word(l.SettleTime > 0, "settleTime %s", l.SettleTime)
	word(l.UnfairNone, "fairness None")
	word(l.AdaptiveMin > 0, "adaptive from %d to %d", l.AdaptiveMin, l.AdaptiveMax)
	word(l.Most > 0, "%s below %g, each start adds %g", l.Signal, l.Most, l.Increment)
	word(l.Mode != "", "mode %s", l.Mode)
	return strings.Join(words, ", ")
}

// policy returns the StartPolicy.
func (s *shape) policy() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "shape", "generation": int64(1)},
		"spec": map[string]any{
			"selector": map[string]any{"terms": []any{map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"grouped": "yes"}}}}},
			"limits":   map[string]any{"running": map[string]any{"pods": int64(s.Running)}},
		},
	}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.PolicyKind))
	return u
}

// podShape is a pod, and what its containers do.
type podShape struct {
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
	Startup         *probeShape
	Liveness        *probeShape
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

// probeShape is a probe that kills. It begins after Delay.
type probeShape struct {
	Delay, Period time.Duration
	Failures      int
}

func (p probeShape) String() string {
	return fmt.Sprintf("%d failures, every %s after %s", p.Failures, p.Period, p.Delay)
}

func (p *probeShape) object() *corev1.Probe {
	if p == nil {
		return nil
	}
	return &corev1.Probe{
		InitialDelaySeconds: int32(p.Delay / time.Second), PeriodSeconds: int32(p.Period / time.Second), FailureThreshold: int32(p.Failures),
	}
}

// most is how long it takes until the probe kills a container that does not answer, at most.
func (p *probeShape) most() time.Duration {
	if p == nil {
		return 0
	}
	return p.Delay + time.Duration(p.Failures+1)*p.Period
}

func (p podShape) String() string {
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

// filler fills what is large.
var filler = strings.Repeat("x", 2<<20)

// object returns the pod as the API server has it.
func (p podShape) object() *corev1.Pod {
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
		pod.Annotations = map[string]string{"filler": filler[:p.Labels/2]}
		pod.Labels = map[string]string{"filler": filler[:p.Labels/2]}
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
			c.Env = []corev1.EnvVar{{Name: "FILLER", Value: filler[:p.Environment]}}
		}
		if p.Probed {
			c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

// work is how long a start of the pod takes, at most.
func (p podShape) work() (d time.Duration) {
	for _, init := range p.Inits {
		d += init
	}
	return d + p.Ready + p.Runs
}

// probed reports whether a probe tells when the pod is ready.
func (p podShape) probed() bool { return p.Probed || p.Startup != nil }

// fails returns how many of the pod's processes end before one gets ready.
func (p podShape) fails() int { return p.Crashes + p.Hangs }

// exempt reports whether the pod never waits.
func (p podShape) exempt() bool { return p.Namespace == "kube-system" }

// pod returns the shape of a pod.
func (s *shape) pod(uid types.UID) *podShape {
	for i := range s.Pods {
		if s.Pods[i].Name == string(uid) {
			return &s.Pods[i]
		}
	}
	return nil
}

// program returns what a container does.
func (s *shape) program(pod *corev1.Pod, container string, run int) runtimetest.Program {
	p := s.pod(pod.UID)
	program := runtimetest.Program{Ready: p.Ready, Exits: p.Runs}
	if container == "app0" { // the containers of a pod share an image
		program.Pull = p.Pull
	}
	switch {
	case strings.HasPrefix(container, "side"):
		program.Ready, program.Exits = 0, 0
	case strings.HasPrefix(container, "init"):
		program.Exits = p.Inits[slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container })-p.Sidecars]
	case run < p.Hangs:
		program.Ready = 24 * time.Hour
	case run < p.Crashes:
		program.Exits, program.Code = max(p.Ready/2, 1), 1
	}
	return program
}

// gateTimeout is the daemon's --gate-timeout: the default, or what --kubelet-config derives.
func (s *shape) gateTimeout() time.Duration {
	if s.RequestTimeout == 2*time.Minute {
		return 100 * time.Second
	}
	return s.RequestTimeout * 8 / 10
}

// roomTimeout is how long a pod may wait in the waiting room: kubelet gives a sandbox twice the time that it gives a container.
func (s *shape) roomTimeout() time.Duration { return 2 * s.gateTimeout() }

// patience is how long it may take until every pod is where it should be, once all has happened: as if one pod started
// after the other, twice, with kubelet's back-offs, and a token of the rate limit for each.
func (s *shape) patience() time.Duration {
	sum := 30 * time.Minute
	for i := range s.Pods {
		p := &s.Pods[i]
		sum += 2*(p.work()+p.Pull) + time.Minute + 2*s.Limits.FillFactor + time.Duration(p.fails())*6*time.Minute + 2*time.Duration(p.Hangs)*max(p.Startup.most(), p.Liveness.most())
		for _, f := range s.Faults {
			sum += 2 * f.Limits.FillFactor
		}
		if s.measured() { // the load average forgets a start slowly
			sum += loadShownAfter
		}
	}
	return sum
}

// cores returns how many CPUs the node has.
func (s *shape) cores() int { return cmp.Or(s.Cores, 4) }

// measured reports whether the daemon measures how busy the node is.
func (s *shape) measured() bool {
	measures := func(l limits) bool { return l.Most > 0 || l.AdaptiveMin > 0 }
	return measures(s.Limits) || slices.ContainsFunc(s.Faults, func(f fault) bool { return measures(f.Limits) })
}

// fault is something that happens to the node.
type fault struct {
	Kind   faultKind
	At     time.Duration
	Gap    time.Duration // how long what ends is away
	Limits limits        // the new ones
	Load   load          // for the Gap
	Step   time.Duration // of the wall clock
}

type faultKind string

// The faults.
const (
	daemonRestarts  faultKind = "the daemon is restarted"
	connectionDrops faultKind = "the connection of NRI breaks"
	kubeletRestarts faultKind = "kubelet is restarted"
	runtimeRestarts faultKind = "the runtime is killed"
	apiAway         faultKind = "the API server is away"
	configChanges   faultKind = "the config changes"
	nodeIsBusy      faultKind = "the node is busy"
	clockIsSet      faultKind = "the wall clock is set"
	stateUnusable   faultKind = "the daemon's state folder cannot be used"
)

// disturbs reports whether the daemon, or what it is connected to, stops for a moment.
func (k faultKind) disturbs() bool {
	return slices.Contains([]faultKind{daemonRestarts, connectionDrops, kubeletRestarts, runtimeRestarts}, k)
}

func (f fault) String() string {
	switch f.Kind {
	case configChanges:
		return string(f.Kind) + ": " + f.Limits.String()
	case connectionDrops:
		return string(f.Kind)
	case clockIsSet:
		return fmt.Sprintf("%s by %s", f.Kind, f.Step)
	case nodeIsBusy:
		return fmt.Sprintf("%s for %s: %+v percent", f.Kind, f.Gap, f.Load)
	}
	return fmt.Sprintf("%s, and back after %s", f.Kind, f.Gap)
}

// step is one thing that is done at a time after the begin.
type step struct {
	at   time.Duration
	text string // empty: not shown
	do   func(b *bubble)
}

// steps returns what is done, in order.
func (s *shape) steps() []step {
	var all []step
	for i := range s.Pods {
		p := s.Pods[i]
		all = append(all, step{p.At, "created: " + p.String(), func(b *bubble) { b.addPod(p.object()) }})
		if p.Deleted > 0 {
			all = append(all, step{p.At + p.Deleted, "deleted: pod " + p.Name, func(b *bubble) { b.deletePod(p.object()) }})
		}
	}
	for i, f := range s.Faults {
		add := func(after time.Duration, text string, do func(b *bubble)) {
			all = append(all, step{f.At + after, text, func(b *bubble) { b.seen.faulted(f.Kind); do(b) }})
		}
		switch f.Kind {
		case daemonRestarts:
			add(0, f.String(), (*bubble).stopDaemon)
			add(f.Gap, "", (*bubble).startDaemon)
		case connectionDrops:
			add(0, f.String(), func(b *bubble) { _, _ = b.runtime.DropPlugins() }) // the runtime may be down
		case kubeletRestarts:
			add(0, f.String(), func(b *bubble) { b.kubelet.Kill() })
			add(f.Gap, "", func(b *bubble) { b.kubelet.Start() })
		case runtimeRestarts:
			add(0, f.String(), func(b *bubble) { b.runtime.Kill() })
			add(f.Gap, "", (*bubble).startRuntime)
		case apiAway:
			add(0, f.String(), func(b *bubble) { b.apiIs(true) })
			add(f.Gap, "", func(b *bubble) { b.apiIs(false) })
		case clockIsSet:
			add(0, f.String(), func(b *bubble) { b.runtime.SetClock(f.Step) })
		case stateUnusable:
			add(0, f.String(), func(b *bubble) { b.stateIs(false) })
			add(f.Gap, "", func(b *bubble) { b.stateIs(true) })
		case nodeIsBusy:
			add(0, f.String(), func(b *bubble) { b.host.bears(f, true) })
			add(f.Gap, "", func(b *bubble) { b.host.bears(f, false) })
		case configChanges:
			add(0, f.String(), func(b *bubble) { b.reconfigure(f.Limits, int64(i+2)) })
		}
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return all
}

// String returns the shape as a person reads it.
func (s *shape) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d CPUs, kubelet's requests may take %s, %s\n", s.Seed, s.cores(), s.RequestTimeout, s.Limits)
	if s.Room {
		fmt.Fprintf(&b, "pods wait in the waiting room\n")
	}
	if s.Running > 0 {
		fmt.Fprintf(&b, "a StartPolicy lets %d pods run\n", s.Running)
	}
	for _, step := range s.steps() {
		if step.text != "" {
			fmt.Fprintf(&b, "  %9s  %s\n", step.at.Round(time.Millisecond), step.text)
		}
	}
	return b.String()
}
