package starts

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Synchronize rebuilds the book from what exists. Pods whose containers began to run less than a start timeout
// ago count as starting, even over the limit. The next review ends the starts that are over.
func (r *RuntimeEvents) Synchronize(sandboxes []*api.PodSandbox, ctrs []*api.Container) {
	known := map[string]podwatch.Pod{}
	for _, sandbox := range sandboxes {
		uid := pods.Key(sandbox)
		known[uid], _ = r.s.Known(uid)
	}
	for range r.s.Ledger.rebuild(time.Now(), sandboxes, ctrs, known) {
		r.s.o.Observer.Report(observe.Unpaced{Reason: reasons.Adopted})
	}
	r.s.Wake()
	r.s.Hooks.expect(ctrs)
}

// rebuild is RuntimeEvents.Synchronize, and returns how many starts it found under way.
func (l *Ledger) rebuild(now time.Time, sandboxes []*api.PodSandbox, ctrs []*api.Container, known map[string]podwatch.Pod) (adopted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, uid := range l.entries.book.Rebuild(now, sandboxes, ctrs, l.entries.matcher.Needs()) {
		l.entries.matcher.Finished(now, uid)
		sandboxGone(now, l.entries.limiter.Lookup(uid))
	}
	all := l.entries.book.UIDs()
	for _, uid := range all {
		if run := l.entries.book.Progress(uid, time.Time{}, podwatch.Pod{}); len(run.IDs) > 0 && now.Sub(run.Youngest) < l.entries.config.Load().Spec.GetStartTimeout() {
			if l.entries.adopt(now, uid, known[uid]) {
				adopted++
			}
		}
	}
	for _, uid := range all {
		l.entries.countRunning(now, uid, known[uid])
	}
	return adopted
}

// adopt counts a start that is under way without having been admitted; pod is what the watch knows. The next
// review ends it if it is over. It returns false if no process of the pod runs, or its start counts already.
func (e *entries) adopt(now time.Time, uid string, pod podwatch.Pod) bool {
	p, _ := e.book.Get(uid)
	run := e.book.Progress(uid, time.Time{}, podwatch.Pod{})
	if len(run.IDs) == 0 {
		return false
	}
	if v, ok := e.limiter.View(now, uid); ok {
		switch v.State {
		case throttle.Starting, throttle.Started:
			return false
		case throttle.Waiting:
			if !run.Youngest.After(v.Arrived) {
				return false // a sidecar that ran before, beside a container that waits
			}
		}
	}
	request := throttle.Request{UID: uid, Name: p.NamespacedName(), Flow: p.Namespace, Arrived: run.Made}
	request.Groups = e.matcher.Groups(now, subject(p, pod))
	e.limiter.Adopt(now, request, run.Youngest)
	return true
}
