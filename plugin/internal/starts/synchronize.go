package starts

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Synchronize rebuilds the book from what exists. Pods whose containers began
// to run less than a start timeout ago count as starting, over the limit where
// reality is; those that have started are found out by the next review.
func (r *RuntimeEvents) Synchronize(sandboxes []*api.PodSandbox, ctrs []*api.Container) {
	now := time.Now()
	lost, running, all := r.s.Ledger.rebuild(now, sandboxes, ctrs)
	for _, uid := range lost {
		r.s.Policies.Finished(now, uid)
		r.sandboxGone(now, uid)
	}
	for uid, c := range running {
		if now.Sub(c.Since) < r.s.config.Load().Spec.GetStartTimeout() {
			pod, _ := r.s.known(uid)
			r.s.Ledger.adopt(now, uid, pod)
		}
	}
	r.s.Wake()
	for _, uid := range all {
		pod, _ := r.s.known(uid)
		r.s.Ledger.countRunning(now, uid, pod)
	}
	r.s.Hooks.expect(ctrs)
}

func (l *Ledger) rebuild(now time.Time, sandboxes []*api.PodSandbox, ctrs []*api.Container) (lost []string, running map[string]pods.Running, all []string) {
	needs := l.policies.Needs()
	l.mu.Lock()
	defer l.mu.Unlock()
	lost, running = l.book.Rebuild(now, sandboxes, ctrs, needs)
	return lost, running, l.book.UIDs()
}

// adopt counts a start that is under way without having been admitted; pod is what the watch
// knows. The next review finds out whether it is over. What ends the start, the end of its
// container or of its pod, takes l.mu as well: it comes before, and nothing is counted, or
// it ends what was counted.
func (l *Ledger) adopt(now time.Time, uid string, pod podwatch.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, _ := l.book.Get(uid)
	c, runs := l.book.Youngest(uid)
	if !runs {
		return
	}
	if v, ok := l.limiter.View(now, uid); ok {
		switch v.State {
		case throttle.Starting, throttle.Started:
			return
		case throttle.Waiting:
			if !c.Since.After(v.Arrived) {
				return // a sidecar that ran before, beside a container that waits
			}
		}
	}
	request := throttle.Request{UID: uid, Name: p.Title(), Flow: p.Namespace, Arrived: c.Made}
	l.policies.Join(now, subject(p, pod), func(groups []throttle.Membership) *throttle.Ticket {
		request.Groups = groups
		return l.limiter.Adopt(now, request, c.Since)
	})
}
