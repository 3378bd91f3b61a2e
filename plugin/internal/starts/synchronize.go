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
func (s *Starts) Synchronize(sandboxes []*api.PodSandbox, ctrs []*api.Container) {
	now := time.Now()
	lost, running, all := s.rebuild(now, sandboxes, ctrs)
	for _, uid := range lost {
		s.Policies.Finished(now, uid)
		s.sandboxGone(now, uid)
	}
	for uid, c := range running {
		if now.Sub(c.Since) < s.config.Load().Spec.GetStartTimeout() {
			pod, _ := s.known(uid)
			s.adopt(now, uid, pod)
		}
	}
	for _, uid := range all {
		pod, _ := s.known(uid)
		s.countRunning(now, uid, pod)
	}
	s.hooks.expect(ctrs)
}

func (s *Starts) rebuild(now time.Time, sandboxes []*api.PodSandbox, ctrs []*api.Container) (lost []string, running map[string]pods.Running, all []string) {
	needs := s.Policies.Needs()
	s.mu.Lock()
	defer s.mu.Unlock()
	lost, running = s.book.Rebuild(now, sandboxes, ctrs, needs)
	return lost, running, s.book.UIDs()
}

// adopt counts a start that is under way without having been admitted; pod is what the watch
// knows. The next review finds out whether it is over. What ends the start, the end of its
// container or of its pod, takes s.mu as well: it comes before, and nothing is counted, or
// it ends what was counted.
func (s *Starts) adopt(now time.Time, uid string, pod podwatch.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _ := s.book.Get(uid)
	c, runs := s.book.Youngest(uid)
	if !runs {
		return
	}
	if v, ok := s.Limiter.View(now, uid); ok {
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
	s.Policies.Join(now, subject(p, pod), func(groups []throttle.Membership) *throttle.Ticket {
		request.Groups = groups
		return s.Limiter.Adopt(now, request, c.Since)
	})
	s.Wake()
}
