package shapes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// Shape is a node, its pods and what happens to them. It decides a run, but for the order in which Go runs goroutines
// that are ready at the same moment.
type Shape struct {
	Seed           uint64
	OnNode         bool          // drawn by DrawNode
	RequestTimeout time.Duration // of kubelet
	Cores          int           // 0: 4
	Room           bool          // the waiting room is installed
	Containerd     string        // its version; empty: a present one
	Standalone     bool          // the daemon has no API server, but a file: a change of the config is a restart
	GateAlways     bool          // the daemon's --gate always. Only if Standalone
	Limits         Limits
	Running        int // how many of the pods that are Grouped run at a time, by a StartPolicy; 0: there is none
	Pods           []Pod
	Faults         []Fault
}

// StartPolicy returns the StartPolicy that lets Running pods run.
func (s *Shape) StartPolicy() *unstructured.Unstructured {
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

// Pod returns the shape of a pod, whose UID is its name here; nil if it is none of this shape.
func (s *Shape) Pod(uid types.UID) *Pod {
	for i := range s.Pods {
		if s.Pods[i].Name == string(uid) {
			return &s.Pods[i]
		}
	}
	return nil
}

// Program returns what a process of a container does. run counts its processes, from 0.
func (s *Shape) Program(pod *corev1.Pod, container string, run int) runtimetest.Program {
	p := s.Pod(pod.UID)
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

// GateTimeout is the daemon's --gate-timeout: the default, or what --kubelet-config derives.
func (s *Shape) GateTimeout() time.Duration {
	if s.RequestTimeout == 2*time.Minute {
		return 100 * time.Second
	}
	return s.RequestTimeout * 8 / 10
}

// RoomTimeout is how long a pod may wait in the waiting room: kubelet gives a sandbox twice the time that it gives a
// container.
func (s *Shape) RoomTimeout() time.Duration { return 2 * s.GateTimeout() }

// MayFail reports whether the daemon believes that kubelet tries again if a container of the pod fails. Standalone, it
// believes what it is told.
func (s *Shape) MayFail(p *Pod) bool {
	if s.Standalone {
		return s.GateAlways
	}
	return p.Policy == corev1.RestartPolicyAlways
}

// CPUs returns how many CPUs the node has.
func (s *Shape) CPUs() int { return cmp.Or(s.Cores, 4) }

// Measured reports whether the daemon measures how busy the node is.
func (s *Shape) Measured() bool {
	measures := func(l Limits) bool { return l.Most > 0 || l.AdaptiveMin > 0 }
	return measures(s.Limits) || slices.ContainsFunc(s.Faults, func(f Fault) bool { return measures(f.Limits) })
}

// Step is one thing that is done at a time after the begin.
type Step struct {
	At   time.Duration
	Text string // empty: not shown
	// Pod is created, or deleted if Ends. It is nil if Fault happens, or is over if Ends.
	Pod   *Pod
	Fault *Fault
	Ends  bool
}

// Steps returns what is done, in order. The pods and faults are those of the shape.
func (s *Shape) Steps() []Step {
	var all []Step
	for i := range s.Pods {
		p := &s.Pods[i]
		all = append(all, Step{At: p.At, Text: "created: " + p.String(), Pod: p})
		if p.Deleted > 0 {
			all = append(all, Step{At: p.At + p.Deleted, Text: "deleted: pod " + p.Name, Pod: p, Ends: true})
		}
	}
	for i := range s.Faults {
		f := &s.Faults[i]
		all = append(all, Step{At: f.At, Text: f.String(), Fault: f})
		if f.Kind.Lasts() {
			all = append(all, Step{At: f.At + f.Gap, Fault: f, Ends: true})
		}
	}
	slices.SortStableFunc(all, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return all
}

// Clone returns a shape whose pods and faults can be changed.
func (s *Shape) Clone() *Shape {
	c := *s
	c.Pods, c.Faults = slices.Clone(s.Pods), slices.Clone(s.Faults)
	return &c
}

// String returns the shape as a person reads it.
func (s *Shape) String() string {
	var b strings.Builder
	name := "seed"
	if s.OnNode {
		name = "seed of a node"
	}
	fmt.Fprintf(&b, "%s %d: %d CPUs, kubelet's requests may take %s, %s\n", name, s.Seed, s.CPUs(), s.RequestTimeout, s.Limits)
	if s.Containerd != "" {
		fmt.Fprintf(&b, "containerd is %s\n", s.Containerd)
	}
	if s.Standalone {
		fmt.Fprintf(&b, "the daemon is standalone, --gate always: %t\n", s.GateAlways)
	}
	if s.Room {
		fmt.Fprintf(&b, "pods wait in the waiting room\n")
	}
	if s.Running > 0 {
		fmt.Fprintf(&b, "a StartPolicy lets %d pods run\n", s.Running)
	}
	for _, step := range s.Steps() {
		if step.Text != "" {
			fmt.Fprintf(&b, "  %9s  %s\n", step.At.Round(time.Millisecond), step.Text)
		}
	}
	return b.String()
}
