package starts

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// With -race, this finds a read or a change of the limiter or of a pod without the Ledger's lock.
func TestAllThatReachesTheLimiterTakesTheLock(t *testing.T) {
	t.Parallel()
	s := aStarts()
	s.configured(t, "spec: {}", throttle.Settings{MaxConcurrent: 2})
	s.enforce(t, t1)
	policy := s.Policies.State()[0].Object
	var all sync.WaitGroup
	for _, do := range []func(now time.Time, uid string){
		func(now time.Time, uid string) { s.lives(now, uid) },
		func(now time.Time, uid string) { s.lives(now, uid) },
		func(now time.Time, uid string) {
			who := Identity{UID: uid, Namespace: "default", Name: uid}
			if ticket, waits := s.Arrive(now, who, podwatch.Pod{}, false, now); waits {
				ticket.Yield(now, true)
				ticket.LeaveRoom(now, time.Minute)
			}
			ticket, _ := s.HookTicket(who, "c-"+uid, now)
			ticket.Wait(now)()
			ticket.ReserveGate(now, throttle.RetriedSoon)
			ticket.DeadlineReached(now)
			ticket.StartNotHeld(now)
			ticket.TryStart(now)
			ticket.Status()
		},
		func(now time.Time, _ string) { s.loop.round(now) },
		// Each alone, or a lock that one takes would hide that the next takes none.
		func(now time.Time, _ string) { s.Ledger.Snapshot(now) },
		func(now time.Time, _ string) { s.Ledger.Groups(now) },
		func(time.Time, string) { s.Ledger.Recent() },
		func(now time.Time, uid string) { s.Ledger.View(now, uid) },
		func(time.Time, string) { s.Ledger.InShadow() },
		func(time.Time, string) { s.AnyCgroup() },
		func(now time.Time, _ string) { s.Ledger.Busy(now) },
		func(now time.Time, _ string) { s.Ledger.Observe(now, throttle.Signals{}) },
		func(now time.Time, _ string) { s.Ledger.SetClaims(now, throttle.GroupKey{Policy: "t1"}, 1) },
		func(now time.Time, uid string) { s.Ledger.StartAnyway(now, uid, reasons.ByHand) },
		func(now time.Time, _ string) { s.Ledger.setFrozen(now, false) },
		func(now time.Time, _ string) {
			for _, mode := range []v1alpha1.Mode{v1alpha1.ModeShadow, v1alpha1.ModeEnforce} {
				e := s.Config()
				e.Spec.Mode = mode
				s.Configure(now, e, throttle.Settings{MaxConcurrent: 2})
			}
			s.Valve.SetShutdown(true)
			s.Valve.SetShutdown(false)
			s.Policies.Set(now, nil)
			s.Policies.Set(now, []*v1alpha1.StartPolicy{policy})
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
	s.Runtime.Sandbox(now, NewSandbox{Sandbox: sandbox, Refusable: true})
	s.Runtime.Container(now, sandbox, ctr, pod, true)
	s.Runtime.ContainerStarted(sandbox, ctr)
	s.PodChanged(pod, false)
	s.Runtime.Synchronize([]*api.PodSandbox{sandbox}, []*api.Container{ctr})
	s.Runtime.ContainerStopped(sandbox, ctr)
	s.Runtime.SandboxStopped(sandbox)
	s.Runtime.ContainerRemoved(sandbox, ctr)
	s.Runtime.SandboxRemoved(sandbox)
	s.PodChanged(pod, true)
}
