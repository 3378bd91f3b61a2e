package shapes

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Draw returns the shape of a seed.
func Draw(seed uint64) *Shape {
	r := dice{rand.New(rand.NewPCG(seed, 61))}
	s := &Shape{Seed: seed, RequestTimeout: 2 * time.Minute, Limits: r.limits()}
	if r.in(0.3) {
		s.RequestTimeout = 15 * time.Minute
	}
	span, busy := time.Duration(0), time.Duration(0)
	for herd := range r.between(1, 4) {
		like := r.pod()
		like.Name = fmt.Sprintf("herd%d", herd)
		at, spread := r.within(time.Duration(herd)*5*time.Minute), r.logUniform(time.Millisecond, 2*time.Minute)
		for i := range r.many(60) {
			p := like
			p.Name = fmt.Sprintf("%s-%d", like.Name, i)
			p.At = at + r.within(spread)
			p.Ready = r.around(like.Ready)
			if r.in(0.2) {
				p.Priority, p.Namespace = r.priority(), []string{"a", "b", "c", "kube-system"}[r.IntN(4)]
			}
			if r.in(0.06) {
				p.Deleted = r.logUniform(10*time.Millisecond, 10*time.Minute)
			}
			if busy += min(p.Work(), s.Limits.EffectiveStartTimeout()) / time.Duration(s.Limits.Concurrent); busy > 2*time.Hour {
				break // more would take hours of the bubble's time
			}
			span = max(span, p.At)
			s.Pods = append(s.Pods, p)
		}
	}
	for range r.IntN(4) {
		s.Faults = append(s.Faults, r.fault(span+min(busy, time.Hour)))
	}
	if seed >= plainSeeds {
		s.vary(dice{rand.New(rand.NewPCG(seed, 62))})
	}
	if seed >= idleSeeds {
		s.burden(dice{rand.New(rand.NewPCG(seed, 63))})
	}
	if seed >= oldSeeds {
		s.age(dice{rand.New(rand.NewPCG(seed, 64))})
	}
	if seed >= fileSeeds {
		s.cutOff(dice{rand.New(rand.NewPCG(seed, 65))})
	}
	return s
}

// fileSeeds is the first seed whose daemon may be standalone.
const fileSeeds = 6_000_000

// cutOff draws a daemon without an API server, whose file is sometimes broken.
func (s *Shape) cutOff(r dice) {
	if !r.in(0.2) {
		return
	}
	s.Standalone, s.GateAlways = true, s.BearsHooks() && r.in(0.5)
	s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.Kind == APIAway })
	for r.in(0.3) {
		at := r.within(s.Pods[len(s.Pods)-1].At + 10*time.Minute)
		s.Faults = append(s.Faults, Fault{Kind: FileBroken, At: at, Gap: r.logUniform(time.Second, 10*time.Minute)})
	}
}

// oldSeeds is the first seed whose containerd may be of an earlier version, and whose sandboxes may die.
const oldSeeds = 50000

// age draws a version of containerd that bears fewer ways to wait, sandboxes that die, CNI configurations that change,
// and limits without loans.
func (s *Shape) age(r dice) {
	within := func() time.Duration { return r.within(s.Pods[len(s.Pods)-1].At + 10*time.Minute) }
	if r.in(0.3) {
		s.Containerd = []string{"v1.7.35", "v2.2.5", "v2.2.6", "v2.3.2"}[r.IntN(4)]
	}
	for r.in(0.3) {
		s.Faults = append(s.Faults, Fault{Kind: SandboxDies, At: within()})
	}
	for s.Room && r.in(0.5) {
		s.Faults = append(s.Faults, Fault{Kind: CNIChanges, At: within()})
	}
	if r.in(0.2) {
		s.Limits.NoLoans = true
		for i := range s.Faults {
			s.Faults[i].Limits.NoLoans = s.Faults[i].Kind == ConfigChanges && r.in(0.5)
		}
	}
}

// BearsHooks reports whether this containerd answers others while a hook waits.
func (s *Shape) BearsHooks() bool { return s.Containerd == "" || s.Containerd == "v2.3.2" }

// BearsRefusals reports whether this containerd removes all of a sandbox that is refused.
func (s *Shape) BearsRefusals() bool { return s.Containerd != "v2.2.5" && s.Containerd != "v2.3.2" }

// idleSeeds is the first seed whose node may be busy.
const idleSeeds = 40000

// burden draws the waiting room, a wall clock that is set, a state folder that cannot be used, limits that depend on how busy
// the node is, and what makes it so.
func (s *Shape) burden(r dice) {
	s.Room = r.in(0.3)
	within := func() time.Duration { return r.within(s.Pods[len(s.Pods)-1].At + 10*time.Minute) }
	for r.in(0.2) {
		by := r.logUniform(time.Second, 30*24*time.Hour)
		if r.in(0.5) {
			by = -by
		}
		s.Faults = append(s.Faults, Fault{Kind: ClockIsSet, At: within(), Step: by})
	}
	if r.in(0.1) {
		s.Faults = append(s.Faults, Fault{Kind: StateUnusable, At: within(), Gap: r.logUniform(time.Second, 20*time.Minute)})
	}
	if !r.in(0.4) {
		return
	}
	s.Cores = r.many(128)
	signal := throttle.Signal(r.IntN(len(throttle.Signals{})))
	limit := func(l *Limits) {
		if r.in(0.6) {
			l.Signal, l.Most = signal, float64(r.between(5, 95))
			if signal == throttle.SignalLoad {
				l.Most = max(0.1, math.Round(l.Most*2*float64(s.Cores))/100)
			}
			if signal <= throttle.SignalLoad && r.in(0.4) {
				l.Increment = math.Round(l.Most * r.Float64())
			}
		}
		if r.in(0.4) {
			l.AdaptiveMin = r.many(4)
			if r.in(0.5) {
				l.AdaptiveMax = l.AdaptiveMin + r.many(8)
			}
		}
	}
	limit(&s.Limits)
	for i := range s.Faults {
		if s.Faults[i].Kind == ConfigChanges {
			limit(&s.Faults[i].Limits)
		}
	}
	using := 0.0
	for i := range s.Pods {
		if i == 0 || r.in(0.1) {
			using = math.Exp(r.Float64()*6 - 4)
		}
		s.Pods[i].Cores = math.Round(using*100) / 100
	}
	percent := func() float64 { return max(0, float64(r.between(-60, 120))) }
	for range r.IntN(4) {
		f := Fault{Kind: NodeIsBusy, At: within(), Gap: r.logUniform(time.Second, 20*time.Minute)}
		f.Load = Load{CPU: percent(), IOWait: percent(), Memory: percent(), IO: percent()}
		s.Faults = append(s.Faults, f)
	}
}

// plainSeeds is the first seed whose shape is varied: those below that were kept find what they found.
const plainSeeds = 4000

// vary adds what the plain shapes do not have.
func (s *Shape) vary(r dice) {
	if r.in(0.05) {
		s.fewAndLarge(r)
		return
	}
	if r.in(0.5) {
		s.Running = r.many(6)
	}
	if r.in(0.2) {
		s.Faults = append(s.Faults, Fault{Kind: APIAway, At: r.within(s.Pods[len(s.Pods)-1].At + 5*time.Minute), Gap: r.logUniform(time.Second, 10*time.Minute)})
	}
	const most = 10 << 20 // bytes of a herd: more takes minutes
	herds := map[string][]*Pod{}
	for i := range s.Pods {
		p := &s.Pods[i]
		herd, _, _ := strings.Cut(p.Name, "-")
		herds[herd] = append(herds[herd], p)
	}
	for _, herd := range slices.Sorted(maps.Keys(herds)) {
		pods := herds[herd]
		like := *pods[0]
		for _, p := range pods { // no probe may kill the slowest one
			like.Ready = max(like.Ready, p.Ready)
		}
		like = r.variation(like)
		var sum time.Duration
		for _, p := range pods {
			sum += p.Work() + p.Pull + 15*time.Second
		}
		grouped := s.Running > 0 && sum/time.Duration(s.Running) < time.Hour // more would take hours
		for _, p := range pods {
			p.Environment = min(like.Environment, most/len(pods)/p.Containers)
			p.Labels = min(like.Labels, most/len(pods))
			if like.Rejected > 0 {
				p.Rejected = r.between(0, like.Rejected)
			}
			p.Grouped = grouped && p.Runs > 0 && !p.Exempt()
			p.Sidecars, p.Startup, p.Liveness, p.Hangs = like.Sidecars, like.Startup, like.Liveness, like.Hangs
		}
	}
}

// fewAndLarge leaves few pods, with a lot of environment, and lets the daemon register beside them.
func (s *Shape) fewAndLarge(r dice) {
	s.Pods, s.Faults = s.Pods[:min(len(s.Pods), r.between(1, 4))], nil
	for i := range s.Pods {
		p := &s.Pods[i]
		p.Containers, p.Environment, p.Crashes = r.between(4, 8), r.bytes(400<<10, 1200<<10), 0
	}
	last := s.Pods[len(s.Pods)-1]
	for range r.between(1, 3) {
		f := r.fault(last.At + last.Work() + 5*time.Minute)
		f.Kind = []FaultKind{DaemonRestarts, ConnectionDrops, RuntimeRestarts}[r.IntN(3)]
		s.Faults = append(s.Faults, f)
	}
}

// variation returns a pod with what all of its herd have.
func (r dice) variation(p Pod) Pod {
	if r.in(0.15) {
		p.Environment = r.bytes(10<<10, 1200<<10)
	}
	if r.in(0.08) {
		p.Labels = r.bytes(10<<10, 500<<10)
	}
	if p.Policy == corev1.RestartPolicyAlways {
		r.probes(&p)
		if r.in(0.2) {
			p.Sidecars = r.between(1, 2)
		}
	}
	if r.in(0.15) {
		p.Rejected = r.between(1, 4)
	}
	return p
}

// dice draws what a shape consists of.
type dice struct{ *rand.Rand }

// in is true in a share of all cases.
func (r dice) in(share float64) bool { return r.Float64() < share }

func (r dice) between(least, most int) int { return least + r.IntN(most-least+1) }

// many returns a number from 1 to most, log-uniform.
func (r dice) many(most int) int { return int(math.Exp(r.Float64() * math.Log(float64(most)+0.99))) }

// within returns a time from 0 to most.
func (r dice) within(most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most) + 1))
}

// logUniform returns a time from least to most, log-uniform, in milliseconds.
func (r dice) logUniform(least, most time.Duration) time.Duration {
	d := time.Duration(float64(least) * math.Exp(r.Float64()*math.Log(float64(most)/float64(least))))
	return d.Round(time.Millisecond)
}

// bytes returns a number from least to most, log-uniform.
func (r dice) bytes(least, most int) int {
	return int(r.logUniform(time.Duration(least)*time.Millisecond, time.Duration(most)*time.Millisecond) / time.Millisecond)
}

// Priorities are those of pods, beside 0.
var Priorities = []int32{-10, 100, 1000}

func (r dice) priority() int32 { return append([]int32{0, 0, 0}, Priorities...)[r.IntN(6)] }

func (r dice) namespace() string { return []string{"a", "b", "c"}[r.IntN(3)] }

func (r dice) limits() Limits {
	l := Limits{Concurrent: r.many(12), UnfairNone: r.in(0.2)}
	if r.in(0.5) {
		l.StartTimeout = r.logUniform(10*time.Second, 30*time.Minute)
	}
	if r.in(0.5) {
		l.MaxWait = r.logUniform(30*time.Second, time.Hour)
	}
	if r.in(0.4) {
		l.SettleTime = min(r.logUniform(time.Second, time.Minute), l.EffectiveStartTimeout()-time.Second)
	}
	if r.in(0.2) {
		l.FillFactor, l.Burst = r.logUniform(100*time.Millisecond, time.Minute), r.many(5)
	}
	if r.in(0.08) {
		l.Mode = []string{"Shadow", "Disabled"}[r.IntN(2)]
	}
	return l
}

func (r dice) pod() Pod {
	p := Pod{
		Namespace: r.namespace(), Priority: r.priority(), Policy: corev1.RestartPolicyAlways, Containers: 1,
		Owner: []string{"", "ReplicaSet", "StatefulSet", "DaemonSet"}[r.IntN(4)], Ready: r.logUniform(100*time.Millisecond, 15*time.Minute), Probed: r.in(0.8),
	}
	if r.in(0.3) {
		p.Pull = r.logUniform(100*time.Millisecond, 5*time.Minute)
	}
	if r.in(0.3) {
		p.Containers = r.between(2, 4)
	}
	if r.in(0.3) {
		for range r.between(1, 3) {
			p.Inits = append(p.Inits, r.logUniform(100*time.Millisecond, time.Minute))
		}
	}
	switch {
	case r.in(0.15):
		p.Policy, p.Owner = corev1.RestartPolicyNever, []string{"", "Job"}[r.IntN(2)]
	case r.in(0.1):
		p.Policy, p.Owner = corev1.RestartPolicyOnFailure, "Job"
	case r.in(0.15) && p.Containers == 1:
		p.Crashes = r.between(1, 5)
	}
	if p.Policy != corev1.RestartPolicyAlways {
		p.Runs = r.logUniform(time.Second, 10*time.Minute)
	}
	return p
}

// probes draws probes that kill: none kills a container before it would be ready, unless that hangs.
func (r dice) probes(p *Pod) {
	if !r.in(0.35) {
		return
	}
	longest := p.Ready * 13 / 10
	probe := &Probe{Period: r.logUniform(time.Second, 30*time.Second).Round(time.Second), Failures: r.between(1, 5)}
	if r.in(0.5) {
		probe.Failures = int(longest/probe.Period) + 2
		p.Startup = probe
	} else {
		probe.Delay = max(0, longest-time.Duration(probe.Failures-1)*probe.Period).Round(time.Second) + probe.Period
		p.Liveness = probe
	}
	if r.in(0.4) && p.Containers == 1 && p.Crashes == 0 && p.Probed {
		p.Hangs = r.between(1, 3)
	}
}

func (r dice) fault(until time.Duration) Fault {
	f := Fault{At: r.within(until), Gap: r.logUniform(100*time.Millisecond, 30*time.Second)}
	switch n := r.IntN(10); {
	case n < 2:
		f.Kind = DaemonRestarts
	case n < 3:
		f.Kind = ConnectionDrops
	case n < 5:
		f.Kind = KubeletRestarts
	case n < 6:
		f.Kind = RuntimeRestarts
	default:
		f.Kind, f.Limits = ConfigChanges, r.limits()
	}
	return f
}
