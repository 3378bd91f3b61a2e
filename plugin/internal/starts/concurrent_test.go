package starts

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// With -race, this finds a read or a change of the limiter or of a pod without the lock.
func TestAllThatReachesTheLimiterTakesTheLock(t *testing.T) {
	t.Parallel()
	s := aStarts()
	s.configured(t, "spec: {}", throttle.Settings{MaxConcurrent: 2})
	s.enforce(t, t1)
	policy := s.Policies()[0].Object
	var all sync.WaitGroup
	thawed, thaw := context.WithCancel(t.Context())
	thaw()
	for _, do := range []func(now time.Time, uid string){
		func(now time.Time, uid string) { s.lives(now, uid) },
		func(now time.Time, uid string) { s.lives(now, uid) },
		func(now time.Time, uid string) {
			who := Identity{UID: uid, Namespace: "default", Name: uid}
			if ticket, waits := s.EnterRoom(now, who, podwatch.Pod{}, now, time.Time{}, true); waits {
				ticket.Yield(now, true)
				ticket.LeaveRoom(now, time.Minute)
			}
			ticket := s.EnterGate(now, who, "c-"+uid, now, time.Time{})
			ticket.Leave()
			ticket.Wait(now)()
			s.AskGate(now, ContainerStart{Ticket: ticket.Ticket}, HookTerms{})
			ticket.DeadlineReached(now)
			ticket.StartNotHeld(now)
			ticket.TryStart(now)
			ticket.Look(now)
		},
		func(now time.Time, _ string) { s.round(now) },
		// Each alone, or a lock that one takes would hide that the next takes none.
		func(now time.Time, _ string) { s.Snapshot(now) },
		func(now time.Time, _ string) { s.Groups(now) },
		func(time.Time, string) { s.Recent() },
		func(now time.Time, uid string) { s.View(now, uid) },
		func(time.Time, string) { s.InShadow() },
		func(time.Time, string) { s.AnyCgroup() },
		func(now time.Time, _ string) { s.Busy(now) },
		func(now time.Time, _ string) { s.Observe(now, throttle.Signals{}) },
		func(now time.Time, _ string) { s.SetClaims(now, throttle.GroupKey{Policy: "t1"}, 1) },
		func(now time.Time, uid string) { s.StartAnyway(now, uid, reasons.ByHand) },
		func(time.Time, string) {
			s.Freeze()
			assert.NoError(t, s.Thaw(thawed))
		},
		func(time.Time, string) { s.Frozen() },
		func(time.Time, string) { s.Ends() },
		func(now time.Time, _ string) {
			for _, mode := range []v1alpha1.Mode{v1alpha1.ModeShadow, v1alpha1.ModeEnforce} {
				e := s.Config()
				e.Spec.Mode = mode
				s.Configure(now, e, throttle.Settings{MaxConcurrent: 2})
			}
			s.SetShutdown(true)
			s.SetShutdown(false)
			s.SetPolicies(now, nil)
			s.SetPolicies(now, []*v1alpha1.StartPolicy{policy})
		},
	} {
		all.Go(func() {
			for i := range 50 {
				do(time.Now(), fmt.Sprint(i))
			}
		})
	}
	all.Wait()
}

// lives makes a pod with a container, and ends both.
func (s *Starts) lives(now time.Time, uid string) {
	sandbox := &api.PodSandbox{Id: "s-" + uid, Uid: uid, Namespace: "default", Name: uid, Pid: 7, Labels: ofT1}
	ctr := &api.Container{Id: "c-" + uid, Name: "app", PodSandboxId: sandbox.GetId()}
	pod := podwatch.Pod{UID: uid, Namespace: "default", Name: uid}
	s.Sandbox(now, NewSandbox{Sandbox: sandbox, Refusable: true})
	s.Container(now, sandbox, ctr, pod, HookTerms{May: true})
	s.ContainerStarted(sandbox, ctr)
	s.PodChanged(time.Now(), pod, false)
	s.Synchronize([]*api.PodSandbox{sandbox}, []*api.Container{ctr})
	s.ContainerStopped(sandbox, ctr)
	s.SandboxStopped(sandbox)
	s.ContainerRemoved(sandbox, ctr)
	s.SandboxRemoved(sandbox)
	s.PodChanged(time.Now(), pod, true)
}
