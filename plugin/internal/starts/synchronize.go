package starts

import (
	"slices"
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
		r.s.After.saw(sandbox)
	}
	for range r.s.Ledger.rebuild(time.Now(), sandboxes, ctrs, known) {
		r.s.o.Observer.Report(observe.Unpaced{Reason: reasons.Adopted})
	}
	r.s.Wake()
	r.s.Hooks.expect(ctrs)
}

// rebuild is RuntimeEvents.Synchronize, and returns how many starts it found under way.
func (l *Ledger) rebuild(now time.Time, sandboxes []*api.PodSandbox, ctrs []*api.Container, known map[string]podwatch.Pod) (adopted int) {
	live := pods.Alive(sandboxes, ctrs)
	subjects := make([]subject, len(live))
	for i, sandbox := range live {
		subjects[i] = subjectOf(sandbox, known[pods.Key(sandbox)])
	}
	found := l.lockMatching(subjects...)
	defer l.unlock()
	l.entries.put(now, found)
	lost := l.entries.book.Rebuild(now, live, ctrs)
	for _, uid := range lost {
		sandboxGone(now, l.entries.limiter.Lookup(uid))
	}
	all, hooks := l.entries.book.UIDs(), map[string]bool{} // sandboxes with a container whose hook may wait
	for _, ctr := range ctrs {
		if ctr.GetState() == api.ContainerState_CONTAINER_CREATED {
			hooks[ctr.GetPodSandboxId()] = true
		}
	}
	for _, uid := range all {
		l.entries.tryEnded(now, uid, known[uid])
		// The containers of a pod that run beside a hook are sidecars of a start that waits.
		if p, _ := l.entries.book.Get(uid); !hooks[p.Sandbox] && l.entries.adopt(now, uid, known[uid], true) {
			adopted++
		}
	}
	for _, uid := range all {
		if !l.entries.countRunning(now, uid, known[uid]) && slices.Contains(lost, uid) {
			l.entries.limiter.Finished(now, uid) // not if it runs on: another would get its place in a group
		}
	}
	return adopted
}

// adopt counts a start that is under way without having been admitted; pod is what the watch knows. The next
// review ends it if it is over. It returns false if
//   - no process of the pod runs, or only beside a container that kubelet holds back,
//   - it may be over, and only sidecars run, beside an app that waits,
//   - the start counts already, or continued at once in the mode Shadow, or
//   - it began longer ago than a start may take, and its pod does not wait.
//
// over reports whether the start may be over, as after a time without the daemon. Then one that began so long ago counts
// from now: its timeout would report that it is stuck, before the review ends it.
func (e *entries) adopt(now time.Time, uid string, pod podwatch.Pod, over bool) bool {
	p, _ := e.book.Get(uid)
	run := e.book.Progress(uid, time.Time{}, podwatch.Pod{})
	if len(run.IDs) == 0 || pod.CrashLooping && pod.Describes(run.IDs) {
		return false
	}
	began := run.Youngest
	old := now.Sub(began) >= e.config.Load().Spec.GetStartTimeout()
	t := e.limiter.Lookup(uid)
	switch state, _ := t.Status(); {
	case state == throttle.Starting:
		return false
	case state == throttle.Waiting:
		if over && pod.OnlySidecars(run.IDs) || !began.After(t.Arrived()) || e.shadows.of(t) != nil {
			return false // a sidecar that ran before, beside a container that waits, or the start continued in the mode Shadow
		}
		if old && over {
			began = now
		}
	case old, state == throttle.Started && !began.After(t.Ended()):
		return false
	}
	request := throttle.Request{UID: uid, Name: p.NamespacedName(), Flow: p.Namespace, Arrived: run.Made}
	request.Groups = e.groups[uid].groups
	e.limiter.Adopt(now, request, began)
	return true
}
