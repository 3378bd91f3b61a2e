package shapes

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The scale of a shape for a real node of two cores: how many pods it bears, how long they come, how long all of their starts
// may take if each takes its turn, and how long a part of it may be away.
const (
	nodePods  = 24
	nodeSpan  = 30 * time.Second
	nodeStart = 6 * time.Second
	nodeBusy  = 40 * time.Second
	nodeGap   = 3 * time.Second
)

// DrawNode returns a shape of a seed that a real node of two cores bears: of some two dozen pods, that get ready within
// seconds, while its parts are killed. It has nothing that a node has but once: no clock that is set, no other
// kubelet's time-outs, no images that take long, no load. A start that does nothing never lends its slot, as on a node
// with so few CPUs others may hold a pod up at any time.
func DrawNode(seed uint64) *Shape {
	r := dice{rand.New(rand.NewPCG(seed, 64))}
	s := &Shape{Seed: seed, OnNode: true, RequestTimeout: 2 * time.Minute, Cores: 2, Limits: r.nodeLimits()}
	if r.in(0.3) {
		s.Running = r.many(3)
	}
	busy := time.Duration(0)
	for herd := range r.between(2, 4) {
		like := r.nodePod()
		at, spread := r.within(nodeSpan/2), r.logUniform(time.Millisecond, nodeSpan/2)
		for i := range r.between(2, 8) {
			p := like
			p.Name = fmt.Sprintf("herd%d-%d", herd, i)
			p.At = at + r.within(spread)
			if p.Ready = r.around(like.Ready); r.in(0.2) {
				p.Priority, p.Namespace = r.priority(), []string{"a", "b", "c", "kube-system"}[r.IntN(4)]
			}
			if r.in(0.1) {
				p.Deleted = r.logUniform(10*time.Millisecond, nodeSpan)
			}
			if p.Rejected > 0 {
				p.Rejected = r.between(0, like.Rejected)
			}
			p.Grouped = s.Running > 0 && p.Runs > 0 && !p.Exempt()
			if busy += p.Work() / time.Duration(s.Limits.Concurrent); busy > nodeBusy || len(s.Pods) == nodePods {
				return s.disturb(r)
			}
			s.Pods = append(s.Pods, p)
		}
	}
	return s.disturb(r)
}

// disturb draws what happens to a node. Its parts stop one after the other.
func (s *Shape) disturb(r dice) *Shape {
	var back time.Duration // when what stopped last runs again
	for range r.IntN(4) {
		f := Fault{At: max(back, r.within(nodeSpan)), Gap: r.logUniform(10*time.Millisecond, nodeGap)}
		switch n := r.IntN(12); {
		case n < 3:
			f.Kind = DaemonRestarts
		case n < 5:
			f.Kind = KubeletRestarts
		case n < 7:
			f.Kind = RuntimeRestarts
		case n < 9:
			f.Kind, f.Limits = ConfigChanges, r.nodeLimits()
		case n < 11:
			f.Kind = APIAway
		default:
			f.Kind = StateUnusable
		}
		back = f.At + f.Gap + time.Second
		s.Faults = append(s.Faults, f)
	}
	return s
}

func (r dice) nodeLimits() Limits {
	l := Limits{Concurrent: r.many(5), UnfairNone: r.in(0.2), NoLoans: true, SettleTime: r.logUniform(2*time.Second, 10*time.Second)}
	if r.in(0.5) {
		l.StartTimeout = r.logUniform(20*time.Second, 2*time.Minute)
	}
	if r.in(0.3) {
		l.MaxWait = r.logUniform(30*time.Second, 4*time.Minute)
	}
	if r.in(0.2) {
		l.FillFactor, l.Burst = r.logUniform(100*time.Millisecond, 2*time.Second), r.many(5)
	}
	if r.in(0.08) {
		l.Mode = []string{"Shadow", "Disabled"}[r.IntN(2)]
	}
	return l
}

func (r dice) nodePod() Pod {
	p := Pod{
		Namespace: r.namespace(), Priority: r.priority(), Policy: corev1.RestartPolicyAlways, Containers: 1,
		Ready: r.logUniform(100*time.Millisecond, nodeStart), Probed: r.in(0.8),
	}
	if r.in(0.3) {
		p.Containers = r.between(2, 3)
	}
	if r.in(0.3) {
		for range r.between(1, 2) {
			p.Inits = append(p.Inits, r.logUniform(100*time.Millisecond, 2*time.Second))
		}
	}
	if r.in(0.15) {
		p.Environment = r.bytes(10<<10, 600<<10)
	}
	if r.in(0.1) {
		p.Rejected = r.between(1, 3)
	}
	switch {
	case r.in(0.2):
		p.Policy = corev1.RestartPolicyNever
	case r.in(0.15):
		p.Policy = corev1.RestartPolicyOnFailure
	case r.in(0.2) && p.Containers == 1:
		p.Crashes = r.between(1, 2)
	}
	if p.Policy != corev1.RestartPolicyAlways {
		p.Runs = r.logUniform(time.Second, nodeStart)
		return p
	}
	if r.in(0.2) {
		p.Sidecars = r.between(1, 2)
	}
	if r.in(0.35) {
		r.nodeProbes(&p)
	}
	return p
}

// nodeProbes draws probes that kill: none kills a container that answers as soon as it would without other work on the
// node, and a little later.
func (r dice) nodeProbes(p *Pod) {
	const period = 2 * time.Second
	probe := &Probe{Period: period, Failures: int((2*nodeStart + 10*time.Second) / period)}
	if r.in(0.5) {
		p.Startup = probe
	} else {
		p.Liveness = probe
	}
	if r.in(0.4) && p.Containers == 1 && p.Crashes == 0 && p.Probed {
		p.Hangs = 1
	}
}

// around returns a time that differs by up to 30 %.
func (r dice) around(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.7 + 0.6*r.Float64())).Round(time.Millisecond)
}
