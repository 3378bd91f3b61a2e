//go:build e2e

package e2e

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
)

// How much later than the judge the daemon may see something, how much earlier it may have admitted a start whose process
// the judge sees begin, as its sandbox comes in between, and after which time it may infer the end of a start while the API
// server is away.
const (
	noticedWithin = 3 * time.Second
	admittedAhead = 5 * time.Second
	inferredAfter = 7 * time.Second
)

// judge judges the starts by what containerd and kubelet saw, and returns how many of them it judged by the limit, and how
// many there were. What a documented exception excuses is counted by its name.
func (c *chaos) judge() (judged, starts int) {
	c.t.Helper()
	all := c.starts()
	for _, s := range all {
		if c.judgeLimit(s, all) {
			judged++
		}
		c.judgeRunning(s)
	}
	c.judgeDeleted()
	c.judgeFailures()
	c.judgeIdle(all)
	for _, s := range all {
		c.t.Logf("%7.1f s: start of %s, up to %.1f s", s.started.Sub(c.began).Seconds(), s.pod, s.until.Sub(c.began).Seconds())
	}
	return judged, len(all)
}

// starts returns the starts of the pods in their order, each with its first container. It is guessed if the end of any of its
// containers is.
func (c *chaos) starts() (all []start) {
	c.t.Helper()
	c.follower.read(c.t.Context()) // changes since the last read
	readies, byPod := c.follower.readies(c.t), map[string][]container{}
	for _, one := range c.made(c.follower.started()) {
		byPod[one.pod] = append(byPod[one.pod], one)
	}
	for i := range c.shape.Pods {
		p := &c.shape.Pods[i]
		var of []container // the containers of the present start
		for _, one := range byPod[p.Name] {
			if len(of) > 0 {
				if until := c.until(p, of, readies[p.Name]); !until.IsZero() && until.Before(one.started) {
					all, of = append(all, start{of[0], until}), nil
				}
			}
			of = append(of, one)
			of[0].guessed = of[0].guessed || one.guessed
		}
		if len(of) > 0 {
			all = append(all, start{of[0], c.until(p, of, readies[p.Name])})
		}
	}
	slices.SortFunc(all, func(a, b start) int { return a.started.Compare(b.started) })
	return all
}

// until returns until when a start surely holds its slot: until it is ready, or all of its app containers have run for
// settleTime, or have exited, or startTimeout is over, or the pod is deleted.
func (c *chaos) until(p *shapes.Pod, of []container, readies []time.Time) time.Time {
	began := of[0].started
	ends := []time.Time{began.Add(c.least(began, shapes.Limits.EffectiveStartTimeout) - admittedAhead)}
	if gone := c.deleted[p.Name]; !gone.IsZero() {
		ends = append(ends, gone)
	}
	apps := slices.DeleteFunc(slices.Clone(of), func(one container) bool { return !strings.HasPrefix(one.name, "app") })
	if len(apps) > 0 && !slices.ContainsFunc(apps, func(one container) bool { return one.finished.IsZero() }) {
		ends = append(ends, slices.MaxFunc(apps, func(a, b container) int { return a.finished.Compare(b.finished) }).finished)
	}
	if !p.TellsReady() && len(apps) >= p.Containers {
		ends = append(ends, apps[len(apps)-1].started.Add(c.least(began, shapes.Limits.EffectiveSettleTime)-time.Second))
	}
	if i := slices.IndexFunc(readies, began.Before); i >= 0 && len(readies)-i >= p.Containers {
		ends = append(ends, readies[i+p.Containers-1])
	}
	return slices.MinFunc(ends, time.Time.Compare)
}

// made returns those containers that were made for this shape: containerd still has some of the one before.
func (c *chaos) made(all []container) []container {
	return slices.DeleteFunc(all, func(one container) bool { return one.created.Before(c.began) })
}

// judgeLimit judges that fewer than the limit were starting when the process of a start began. It reports whether it could.
func (c *chaos) judgeLimit(s start, all []start) (judged bool) {
	c.t.Helper()
	p := c.shapeOf(s.pod)
	first, others, excused := s.started, 0, map[string]int{}
	for _, other := range s.beside(all) {
		if other.pod == s.pod || other.guessed || c.shapeOf(other.pod).Exempt() {
			continue
		}
		switch { // the daemon may know its end, too early
		case len(c.during(other.started, s.started, shapes.KubeletRestarts)) > 0:
			excused["a restarted kubelet reports ready what it has not probed"]++
			continue
		case s.started.Sub(other.started) > inferredAfter && len(c.during(other.started.Add(-time.Minute), s.started, shapes.APIAway)) > 0:
			excused["Inferred"]++
			continue
		}
		others++
		first = earlier(first, other.started)
	}
	limit := c.mostAtATime(first.Add(-admittedAhead), s.started)
	switch {
	case limit == 0:
		return false
	case c.unpaced(s.container):
		c.excepted["unpaced"]++
		return false
	case others < limit:
		for name, n := range excused {
			if others+n >= limit {
				c.excepted[name]++
			}
		}
	case p.Exempt():
		c.excepted["exempt"]++
	case c.overdue(c.waitsSince(s, all), s.started):
		c.excepted["maxWait"]++
	default:
		assert.Fail(c.t, "no more pods start than the limit", "%s begins at %.1f s, beside %d others that hold a slot of %d", s.pod, s.started.Sub(c.began).Seconds(), others, limit)
	}
	return true
}

// judgeRunning judges that a pod of the StartPolicy starts only if it may run beside the others.
func (c *chaos) judgeRunning(s start) {
	c.t.Helper()
	grouped := func(pod string) bool { return c.shapeOf(pod).Grouped }
	calm := s.started.Add(-20 * time.Second)
	if !grouped(s.pod) || c.mostAtATime(calm, s.started) == 0 || len(c.during(calm, s.started, stopping...)) > 0 || len(c.during(s.started.Add(-time.Minute), s.started, shapes.APIAway)) > 0 {
		return
	}
	running := map[string]bool{}
	for _, one := range c.made(c.follower.started()) {
		gone := c.deleted[one.pod]
		if one.pod != s.pod && grouped(one.pod) && one.started.Before(s.started) && !one.guessed &&
			(one.finished.IsZero() || one.finished.After(s.started)) && (gone.IsZero() || gone.After(s.started)) {
			running[one.pod] = true
		}
	}
	assert.Less(c.t, len(running), c.shape.Running, "pods of the StartPolicy that run when %s begins at %.1f s", s.pod, s.started.Sub(c.began).Seconds())
}

// triedAgain is how long a slot may be free while pods wait: until kubelet tries again, which it does every 10 to 15 s, and
// once more, as the first that comes may be one for which the slot is not.
const triedAgain = 45 * time.Second

// judgeIdle judges that no slot is free for long while a pod waits for its first start, if nothing but slots holds pods.
func (c *chaos) judgeIdle(all []start) {
	c.t.Helper()
	l := c.shape.Limits
	if !l.Enforced() || l.FillFactor > 0 || c.shape.Running > 0 || len(c.faults) > 0 || len(c.rejected) > 0 {
		return
	}
	var first []life
	for _, s := range all {
		waits := s.started
		if !slices.ContainsFunc(first, func(other life) bool { return other.pod.Name == s.pod }) {
			waits = c.created[s.pod]
		}
		first = append(first, life{pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: s.pod}}, created: waits, started: s.started, ready: s.until})
	}
	idle := longestIdle(first, l.Concurrent)
	c.t.Logf("a slot was free for at most %.1f s while a pod waited", idle.Seconds())
	assert.Less(c.t, idle, triedAgain, "longest time that a slot was free while a pod waited")
}

// judgeDeleted judges that a container whose start waits is not started once its pod is deleted.
func (c *chaos) judgeDeleted() {
	c.t.Helper()
	for _, one := range c.made(c.follower.started()) {
		gone := c.deleted[one.pod]
		if gone.IsZero() || one.created.After(gone) || len(c.during(gone.Add(-time.Minute), one.started, append(stopping, shapes.APIAway)...)) > 0 {
			continue
		}
		assert.Less(c.t, one.started.Sub(gone), noticedWithin, "%s of %s starts after the pod's deletion", one.name, one.pod)
	}
}

// stopping are the faults in which a part of the node stops.
var stopping = []shapes.FaultKind{shapes.DaemonRestarts, shapes.KubeletRestarts, shapes.RuntimeRestarts}

// judgeFailures judges that no container ended without having run, unless a fault, a change of the limits or the pod's
// deletion explains it, and that kubelet counts no other restarts than those of containers that ran.
func (c *chaos) judgeFailures() {
	c.t.Helper()
	failed, ran := map[string]int{}, map[string]int{}
	for _, one := range c.made(c.follower.started()) {
		ran[one.pod+"/"+one.name]++
	}
	for _, one := range c.made(c.follower.failed()) {
		c.t.Logf("%s of %s was made at %.1f s, and failed at %.1f s", one.name, one.pod, one.created.Sub(c.began).Seconds(), one.finished.Sub(c.began).Seconds())
		failed[one.pod+"/"+one.name]++
		gone := c.deleted[one.pod]
		during := c.during(one.created.Add(-time.Second), one.finished.Add(noticedWithin), append(stopping, shapes.ConfigChanges)...)
		switch {
		case !gone.IsZero() && gone.Before(one.finished):
			c.excepted["deleted in the gate"]++
		case len(during) > 0:
			c.excepted["failed: "+string(during[0].kind)]++
		case one.finished.Sub(one.created) > 95*time.Second:
			c.excepted["GateExpired"]++
		default:
			assert.Fail(c.t, "a waiting pod shows no failed start", "%s of %s", one.name, one.pod)
		}
	}
	for i := range c.shape.Pods {
		p := &c.shape.Pods[i]
		pod := c.pod(p)
		if pod == nil {
			continue
		}
		for _, s := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
			name := p.Name + "/" + s.Name
			more := int(s.RestartCount) - max(ran[name]-1, 0) - failed[name]
			if faults := c.during(c.created[p.Name], time.Now(), stopping...); more > 0 && more <= len(faults) {
				c.excepted["restart counted: "+string(faults[0].kind)]++ // of a container that was lost with a part of the node
				continue
			}
			assert.LessOrEqual(c.t, more, 0, "more restarts than kubelet may count of %s, which ran %d times and failed %d times", name, ran[name], failed[name])
		}
		c.t.Logf("%s: created at %.1f s, %s, ready %t, %d restarts", p.Name, c.created[p.Name].Sub(c.began).Seconds(), pod.Status.Phase, condition(*pod, corev1.PodReady), restarts(*pod))
	}
}

func (c *chaos) shapeOf(pod string) *shapes.Pod {
	return &c.shape.Pods[slices.IndexFunc(c.shape.Pods, func(p shapes.Pod) bool { return p.Name == pod })]
}

// unpaced reports whether no daemon could hold a container.
func (c *chaos) unpaced(one container) bool {
	return slices.ContainsFunc(c.outages, func(o outage) bool { return o.missed(one.created, one.started) })
}

// waitsSince returns since when a pod has waited for a start: since its creation, or the end of its start before.
func (c *chaos) waitsSince(s start, all []start) time.Time {
	since := c.created[s.pod]
	for _, other := range all {
		if other.pod == s.pod && other.started.Before(s.started) {
			since = other.until
		}
	}
	return since
}

// overdue reports whether a pod that has waited since a time may start over the limit.
func (c *chaos) overdue(since, now time.Time) bool {
	return now.Sub(since) >= max(c.least(since, shapes.Limits.EffectiveMaxWait), 30*time.Second)-2*time.Second
}

// since returns the limits that may have been in force at any moment from a time to another.
func (c *chaos) since(from, to time.Time) (all []shapes.Limits) {
	for i, l := range c.inForce {
		if l.at.Before(to) && (i == len(c.inForce)-1 || c.inForce[i+1].at.Add(noticedWithin).After(from)) {
			all = append(all, l.Limits)
		}
	}
	return all
}

// mostAtATime returns the largest limit from a time to another; 0 if it was not in force all the time.
func (c *chaos) mostAtATime(from, to time.Time) (n int) {
	for _, l := range c.since(from, to) {
		if !l.Enforced() {
			return 0
		}
		n = max(n, l.AtMost())
	}
	return n
}

// least returns the smallest value of the limits since a time.
func (c *chaos) least(from time.Time, of func(shapes.Limits) time.Duration) time.Duration {
	return of(slices.MinFunc(c.since(from, time.Now()), func(a, b shapes.Limits) int { return cmp.Compare(of(a), of(b)) }))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
