package throttle

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// modelMember is what the model knows of a pod with groups.
type modelMember struct {
	groups         []Membership
	running, ready bool
}

// of gives the member of the pod; none: the zero member.
func (m *model) member(uid string) modelMember {
	if o := m.members[uid]; o != nil {
		return *o
	}
	return modelMember{}
}

// change changes what is known of a pod. One without groups is not remembered, nor one that
// neither waits, starts nor runs.
func (m *model) change(uid string, how func(*modelMember)) {
	o := m.members[uid]
	if o == nil {
		o = &modelMember{}
		m.members[uid] = o
		if p := m.open(uid); p != nil {
			o.running = p.state == Starting
		}
	}
	how(o)
	if len(o.groups) == 0 || (m.open(uid) == nil && !o.running) {
		delete(m.members, uid)
	}
}

// usage counts what a group uses.
func (m *model) usage(key GroupKey) (v GroupView) {
	v.Key, v.Starting.Requests, v.Running.Requests = key, Amounts{}, Amounts{}
	add := func(u *Usage, asks Amounts) {
		u.Pods++
		for resource, amount := range asks {
			if amount > 0 {
				u.Requests[resource] += amount
			}
		}
	}
	for uid, o := range m.members {
		for _, in := range o.groups {
			if in.Key != key {
				continue
			}
			p := m.open(uid)
			if p != nil && p.state == Waiting {
				v.Waiting++
			}
			if p != nil && p.state == Starting {
				add(&v.Starting, in.Requests)
			}
			if o.running {
				add(&v.Running, in.Requests)
			}
			if o.running && o.ready {
				v.Ready++
			}
		}
	}
	return v
}

func above(b Bound, used Usage, asks Amounts) bool {
	if b.Pods != nil && used.Pods+1 > *b.Pods {
		return true
	}
	for resource, most := range b.Requests {
		if asks[resource] > 0 && used.Requests[resource]+asks[resource] > most {
			return true
		}
	}
	return false
}

// paceIsFull knows the pacers as they are documented.
func paceIsFull(p Pacer, ready, starting int) bool {
	switch {
	case p.Kind == "" || ready >= p.MaxStagger:
		return false
	case p.Kind == Linear:
		return starting >= p.Step-ready%p.Step
	case ready == 0:
		return starting >= p.MinInitial
	default:
		return starting >= int(math.Ceil(float64(ready)*p.Multiplier))
	}
}

// holds gives what holds a pod; late are those that a deadline may pass.
func (m *model) holds(uid string) (runs, late []Reason) {
	o := m.member(uid)
	for _, in := range o.groups {
		limits, ok := m.policies[in.Key.Policy]
		if !ok || in.Bypass {
			continue
		}
		u := m.usage(in.Key)
		switch {
		case o.running:
		case above(limits.Running, Usage{}, in.Requests):
			runs = append(runs, Unadmittable)
		case above(limits.Running, u.Running, in.Requests):
			runs = append(runs, PolicyRunning)
		}
		if above(limits.Starting, u.Starting, in.Requests) {
			late = append(late, PolicyStarting)
		}
		if !o.running && paceIsFull(limits.Pacer, u.Ready, int(u.Running.Pods)-u.Ready) {
			late = append(late, PolicyPacer)
		}
		if claims := m.claims[in.Key]; limits.Claims && claims >= 0 && u.Starting.Pods >= int64(claims) {
			late = append(late, PolicyClaim)
		}
	}
	return runs, late
}

// held tells whether a policy holds the pod.
func (m *model) held(uid string) bool {
	runs, late := m.holds(uid)
	return len(runs)+len(late) > 0
}

// class names what may hold a pod.
func (m *model) class(uid string) string {
	o := m.member(uid)
	var all []string
	for _, in := range o.groups {
		limits, ok := m.policies[in.Key.Policy]
		if !ok || in.Bypass {
			continue
		}
		var some []string
		touch := func(name string, b Bound) {
			if b.Pods != nil {
				some = append(some, name)
			}
			for resource := range b.Requests {
				if in.Requests[resource] > 0 {
					some = append(some, name+" "+resource)
				}
			}
			if len(some) > 0 && above(b, Usage{}, in.Requests) {
				some = append(some, name+" never")
			}
		}
		touch("starting", limits.Starting)
		if !o.running {
			touch("running", limits.Running)
		}
		if limits.Pacer.Kind != "" && !o.running {
			some = append(some, "paced")
		}
		if limits.Claims {
			some = append(some, "claims")
		}
		if len(some) > 0 {
			slices.Sort(some)
			all = append(all, fmt.Sprintf("%q: %s", in.Key, strings.Join(some, ", ")))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// heads gives the first that is present of each class, in the order of the queue.
func (m *model) heads() (heads []*pod) {
	seen := map[string]bool{}
	for _, p := range m.queue(true) {
		if c := m.class(p.uid); !seen[c] {
			seen[c] = true
			heads = append(heads, p)
		}
	}
	return heads
}

// next gives whoever is to be admitted next, or nil.
func (m *model) next() *pod {
	for _, p := range m.heads() {
		if !m.held(p.uid) {
			return p
		}
	}
	return nil
}

// mayPassPolicies tells whether a deadline may pass what holds the pod.
func (m *model) mayPassPolicies(p *pod) bool {
	class := m.class(p.uid)
	for _, o := range append(m.heads(), p) {
		if o != p && (m.class(o.uid) != class || !goesBefore(o, p)) {
			continue
		}
		if runs, _ := m.holds(o.uid); len(runs) > 0 {
			return false
		}
	}
	return true
}

// checkRunning checks that a pod which was admitted is within every bound of those that
// run that may hold it.
func (m *model) checkRunning(p *pod, ran bool) {
	m.t.Helper()
	for _, in := range m.member(p.uid).groups {
		limits := m.policies[in.Key.Policy]
		if in.Bypass || ran {
			continue
		}
		u := m.usage(in.Key).Running
		require.True(m.t, limits.Running.Pods == nil || u.Pods <= *limits.Running.Pods, "%s: %d pods run", in.Key, u.Pods)
		for resource, most := range limits.Running.Requests {
			require.True(m.t, in.Requests[resource] <= 0 || u.Requests[resource] <= most, "%s: %s", in.Key, resource)
		}
	}
}

// checkGroups compares the groups and the classes of the limiter with the model's.
func (m *model) checkGroups() {
	m.t.Helper()
	want := map[GroupKey]bool{}
	for _, o := range m.members {
		for _, in := range o.groups {
			want[in.Key] = true
		}
	}
	for key, n := range m.claims {
		want[key] = want[key] || n != 0
	}
	maps.DeleteFunc(want, func(_ GroupKey, there bool) bool { return !there })
	views := m.l.Groups(m.now)
	require.Len(m.t, views, len(want))
	for _, got := range views {
		require.True(m.t, want[got.Key], "%s", got.Key)
		u := m.usage(got.Key)
		for _, pair := range [][2]Usage{{u.Starting, got.Starting}, {u.Running, got.Running}} {
			require.Equal(m.t, pair[0].Pods, pair[1].Pods, "%s", got.Key)
			require.True(m.t, maps.Equal(pair[0].Requests, pair[1].Requests), "%s: %v, %v", got.Key, pair[0], pair[1])
		}
		require.Equal(m.t, []int{u.Ready, u.Waiting, m.claims[got.Key]}, []int{got.Ready, got.Waiting, got.Claims}, "%s", got.Key)
		require.GreaterOrEqual(m.t, got.Wants, 0)
		require.True(m.t, got.Wants == 0 || m.policies[got.Key.Policy].Claims)
	}
	classes := map[*class]string{}
	names := map[string]*class{}
	for _, p := range m.in(Waiting) {
		name := m.class(p.uid)
		if had, ok := classes[p.t.class]; ok {
			require.Equal(m.t, had, name, "two in one queue")
		}
		if had, ok := names[name]; ok {
			require.Same(m.t, had, p.t.class, "of one class, in two queues")
		}
		classes[p.t.class], names[name] = name, p.t.class
	}
	delete(classes, m.l.classes[0])
	require.Len(m.t, m.l.classes, 1+len(classes), "queues for which nobody waits")
}

func (m *model) setPolicies(limits map[string]GroupLimits) {
	m.t.Helper()
	m.asked = asked{what: "setPolicies " + writtenPolicies(limits)}
	m.policies = limits
	m.l.SetPolicies(m.late, limits)
	m.settle()
}

func writtenPolicies(all map[string]GroupLimits) (s string) {
	bound := func(b Bound) string {
		if b.Pods == nil {
			return fmt.Sprintf("any %v", b.Requests)
		}
		return fmt.Sprintf("%d %v", *b.Pods, b.Requests)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p := all[name]
		s += fmt.Sprintf("[%s starting %s running %s pacer %v claims %t]", name, bound(p.Starting), bound(p.Running), p.Pacer, p.Claims)
	}
	return s
}

func (m *model) setGroups(uid string, groups []Membership) {
	m.t.Helper()
	m.asked = asked{what: fmt.Sprintf("setGroups %s %v", uid, groups)}
	if m.members[uid] != nil || m.open(uid) != nil {
		m.change(uid, func(o *modelMember) { o.groups = groups })
	}
	m.l.SetGroups(m.late, uid, groups)
	m.settle()
}

func (m *model) setRunning(uid string, groups []Membership, ready bool) {
	m.t.Helper()
	m.asked = asked{what: fmt.Sprintf("setRunning %s %v ready %t", uid, groups, ready)}
	m.change(uid, func(o *modelMember) { *o = modelMember{groups: groups, running: true, ready: ready} })
	m.l.SetRunning(m.late, uid, groups, ready)
	m.settle()
}

func (m *model) finished(uid string) {
	m.t.Helper()
	m.asked = asked{what: "finished " + uid}
	if m.members[uid] != nil {
		m.change(uid, func(o *modelMember) { o.running, o.ready = false, false })
	}
	m.l.Finished(m.late, uid)
	m.settle()
}

func (m *model) setClaims(key GroupKey, starts int) {
	m.t.Helper()
	m.asked = asked{what: fmt.Sprintf("setClaims %s %d", key, starts)}
	m.claims[key] = starts
	m.l.SetClaims(m.late, key, starts)
	m.settle()
}
