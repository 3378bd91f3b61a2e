package starts

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// threadTime returns the CPU time of this thread. On a busy machine the wall clock says little.
func threadTime(b *testing.B) time.Duration {
	b.Helper()
	var t unix.Timespec
	require.NoError(b, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t))
	return time.Duration(t.Nano())
}

// starting is how many pods of herd start.
const starting = 110

// herd is a Starts with an adaptive limit, pods that start, and 500 with a process that waits. The costs of all are
// known. The first that asks takes the only token.
func herd(b *testing.B, now time.Time) *Starts {
	b.Helper()
	s := aStarts(func(o *Options) { o.Pods = &asked{pods: map[string]podwatch.Pod{}} })
	s.Configure(now, crd.FromFile(&v1alpha1.PacemakerConfig{}), throttle.Settings{
		Adaptive: &adaptive.Settings{Cores: 64}, FillEvery: time.Hour, // the node would bear all of them at once
	})
	for i := range starting + 500 {
		uid := fmt.Sprint(i)
		if i < starting-1 {
			s.runs(now, uid, 7)
			s.adopts(now, throttle.Request{UID: uid, Flow: fmt.Sprint(i % 10), Arrived: now.Add(-time.Second)}, now.Add(-time.Second))
			continue
		}
		s.Sandbox(now, NewSandbox{Sandbox: sandboxOf(i)})
		s.ledger.limiter.Lookup(uid).Wait(now)
	}
	s.setProfiles(now, profilesSeen(now.Add(-time.Hour)))
	snapshot := s.Snapshot(now)
	require.Equal(b, []int{starting, 500}, []int{len(snapshot.Starting), len(snapshot.Waiting)})
	s.drain()
	return s
}

// profilesSeen returns what the pods of herd are expected to take, by starts that were seen last at a time.
func profilesSeen(at time.Time) map[string]throttle.Profile {
	profiles := map[string]throttle.Profile{}
	for i := range starting + 500 {
		profiles[fmt.Sprint(i)] = throttle.Profile{Kind: fmt.Sprint(i % 20), Patience: time.Minute, Cost: &costs.Cost{
			Count: 9, Seen: at, Peak: costs.Figure{Mean: 1},
			Idle: costs.Figure{Mean: float64(5 + i%17)}, CPU: costs.Figure{Mean: 0.2 + 0.1*float64(i%5)},
		}}
	}
	return profiles
}

func sandboxOf(i int) *api.PodSandbox {
	return &api.PodSandbox{Id: fmt.Sprint("s", i), Uid: fmt.Sprint(i), Namespace: fmt.Sprint(i % 10), Name: fmt.Sprint(i), Pid: 7}
}

// How long each event, and the look at the state, hold the lock at the longest, with what they do beside.
func BenchmarkHold(b *testing.B) {
	seen := []map[string]throttle.Profile{profilesSeen(time.Now()), profilesSeen(time.Now().Add(-time.Minute))}
	found, err := crd.Parse([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: all}\n" +
		"spec: {selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 300}}}"))
	require.NoError(b, err)
	inForce := [][]policies.State{nil, policies.Compile(found.Policies)}
	var sandboxes []*api.PodSandbox
	var ctrs []*api.Container
	for i := range starting + 500 {
		sandbox := sandboxOf(i)
		if i < starting-1 {
			sandbox.Id = sandbox.GetUid()
			ctrs = append(ctrs, &api.Container{Id: sandbox.GetUid(), Name: "app", PodSandboxId: sandbox.GetUid(), Pid: 7, State: api.ContainerState_CONTAINER_RUNNING})
		}
		sandboxes = append(sandboxes, sandbox)
	}
	for name, do := range map[string]func(s *Starts, now time.Time, i int){
		"sandbox": func(s *Starts, now time.Time, i int) {
			s.Sandbox(now, NewSandbox{Sandbox: sandboxOf(200 + i%300), Refusable: true})
		},
		"container": func(s *Starts, now time.Time, i int) {
			ctr := &api.Container{Id: fmt.Sprint("c", i), Name: "app", PodSandboxId: fmt.Sprint("s", 200+i%300)}
			s.Container(now, sandboxOf(200+i%300), ctr, podwatch.Pod{}, HookTerms{May: true})
		},
		"hook": func(s *Starts, now time.Time, i int) {
			Ticket{s, s.ledger.limiter.Lookup(fmt.Sprint(200 + i%300))}.Wait(now)()
		},
		"ready": func(s *Starts, now time.Time, i int) {
			uid := fmt.Sprint(i % starting)
			s.PodChanged(now, podwatch.Pod{
				UID: uid, Namespace: "default", Name: uid, Probed: true, ContainersReady: true,
				Containers: map[string]podwatch.Container{"app": {ID: uid}},
			}, false)
		},
		"signals": func(s *Starts, now time.Time, _ int) {
			r := throttle.Reading{Value: 50, From: now.Add(-2 * time.Second), To: now}
			s.Observe(now, throttle.Signals{throttle.SignalCPU: r, throttle.SignalCPUPressure: r, throttle.SignalIOPressure: r})
		},
		"tick":    func(s *Starts, now time.Time, _ int) { s.advance(now) },
		"status":  func(s *Starts, now time.Time, _ int) { s.Snapshot(now) },
		"learned": func(s *Starts, now time.Time, i int) { s.setProfiles(now, seen[i%2]) },
		"policy": func(s *Starts, now time.Time, i int) {
			set := s.inForce.Load()
			next, _ := set.WithPolicies(now, inForce[i%2])
			s.putInForce(now, set, next)
		},
		"synchronize": func(s *Starts, _ time.Time, _ int) { s.Synchronize(sandboxes, ctrs) },
		"lost":        func(s *Starts, _ time.Time, _ int) { s.Synchronize(sandboxes[starting:], nil) },
	} {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would add to one call of many
			began := time.Now()
			s := herd(b, began)
			var longest, total time.Duration
			for i := 0; b.Loop(); i++ {
				if i%100 == 99 { // before most pods that start have started
					s = herd(b, began)
					runtime.GC()
				}
				before := threadTime(b)
				do(s, began.Add(time.Duration(i%100)*time.Millisecond), i)
				took := threadTime(b) - before
				longest, total = max(longest, took), total+took
			}
			b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(longest.Microseconds()), "longest-us")
		})
	}
}
