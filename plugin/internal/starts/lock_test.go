package starts

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// lockWatch fails a test when the lock of the book is held where it must not be.
type lockWatch struct {
	t     *testing.T
	s     *Starts
	calls map[string]int
}

func (l *lockWatch) free(who string) {
	l.calls[who]++
	if l.s == nil {
		return
	}
	if !l.s.Ledger.mu.TryLock() {
		assert.Fail(l.t, "the lock of the book is held", who)
		return
	}
	l.s.Ledger.mu.Unlock()
}

func (l *lockWatch) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook.
func (l *lockWatch) Fire(*logrus.Entry) error { l.free("log"); return nil }

// Under the lock of the book nobody is asked but the limiter and the matcher of policies: no log, no
// pod watch, nobody who is told that a pod is forgotten.
func TestTheLockOfTheBookIsFreeWhileOthersAreAsked(t *testing.T) {
	t.Parallel()
	l := &lockWatch{t: t, calls: map[string]int{}}
	log := discard()
	log.SetLevel(logrus.DebugLevel)
	log.AddHook(l)
	s := aStarts(func(o *Options) {
		o.Log = log
		o.Pods = &asked{get: func(string) { l.free("pod watch") }}
		o.Forgotten = func(string) { l.free("forgotten") }
		o.Round = func(time.Time, throttle.Snapshot) time.Time {
			l.free("round")
			return time.Time{}
		}
	})
	l.s = s
	s.configured(t, "spec: {throttleConfig: {maxConcurrent: {value: 1}}}", throttle.Settings{MaxConcurrent: 1})
	now := time.Now()
	for _, uid := range []string{"first", "second"} {
		sandbox := &api.PodSandbox{Id: "s-" + uid, Uid: uid, Namespace: "default", Name: uid, Pid: 7}
		ctr := &api.Container{Id: "c-" + uid, Name: "app", PodSandboxId: sandbox.GetId()}
		s.Runtime.Sandbox(now, sandbox, podwatch.Pod{}, false, true)
		a := s.Runtime.Container(now, sandbox, ctr, podwatch.Pod{}, false)
		a.Ticket.TryStart(now)
		s.GoOn(now, a.Ticket, reasons.Concurrency)
		s.Runtime.ContainerStarted(sandbox, ctr)
		s.Runtime.Synchronize([]*api.PodSandbox{sandbox}, []*api.Container{ctr})
		s.loop.round(now)
		s.PodChanged(podwatch.Pod{UID: uid, Namespace: "default", Name: uid}, false)
		s.HookLeft(uid, ctr.GetId())
		s.Runtime.ContainerStopped(sandbox, ctr)
		s.Runtime.ContainerRemoved(sandbox, ctr)
		s.Runtime.SandboxStopped(sandbox)
		s.PodChanged(podwatch.Pod{UID: uid}, true)
		s.Runtime.SandboxRemoved(sandbox)
	}
	s.Valve.ShutsDown(true)
	s.Valve.ShutsDown(false)
	s.configured(t, "spec: {mode: \"Off\"}", throttle.Settings{})
	s.loop.round(now.Add(time.Minute))
	for _, who := range []string{"log", "pod watch", "forgotten", "round"} {
		assert.Positive(t, l.calls[who], who)
	}
}

// whileGrouped calls a function while a pod is put into its groups, which is just before
// it joins the queue.
type whileGrouped struct {
	*throttle.Limiter
	call func()
}

func (l *whileGrouped) SetGroups(now time.Time, pod throttle.PodGroups) {
	l.call()
	l.Limiter.SetGroups(now, pod)
}

const t1 = "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {requests: {cpu: 200m}}}}"

func enforce(t *testing.T, k *policies.Matcher) {
	t.Helper()
	found, err := crd.Parse([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: t1}\nspec: " + t1))
	require.NoError(t, err)
	k.SetPolicies(time.Now(), found.Policies)
}

// A start that was found keeps its slot until it is stuck if its end was told between the
// look at its containers and the count. What tells of ends takes the lock of the book.
func TestNothingCanEndWhileItIsFound(t *testing.T) {
	t.Parallel()
	looked, free := false, false
	var s *Starts
	s = aStarts(func(o *Options) {
		o.Policies = policies.New(policies.Options{Log: discard(), Limiter: &whileGrouped{o.Limiter, func() {
			looked = true
			if s.Ledger.mu.TryLock() {
				free = true
				s.Ledger.mu.Unlock()
			}
		}}})
	})
	enforce(t, s.Policies)
	sandbox := &api.PodSandbox{Id: "s", Uid: "u", Namespace: "default", Name: "ends", Pid: 1 << 22, Labels: map[string]string{"throttle": "t1"}}
	runs := &api.Container{Id: "c", PodSandboxId: "s", Name: "app", State: api.ContainerState_CONTAINER_RUNNING}
	s.Runtime.Synchronize([]*api.PodSandbox{sandbox}, []*api.Container{runs})
	assert.True(t, looked)
	assert.False(t, free, "its end could be told now, and nobody would end what is counted next")
	ticket := s.Limiter.Lookup("u")
	state, reason := ticket.Status()
	require.Equal(t, throttle.Starting, state)
	require.Equal(t, reasons.Adopted, reason)

	s.Ledger.forgetDeleted(time.Now(), "u")
	state, reason = ticket.Status()
	assert.Equal(t, throttle.Gone, state, "with the pod")
	assert.Equal(t, reasons.Deleted, reason)
	s.Ledger.adopt(time.Now(), "u", podwatch.Pod{})
	state, _ = s.Limiter.Lookup("u").Status()
	assert.Equal(t, throttle.Gone, state, "nothing is found of a pod that is gone")
}

// A container may start just when its pod is deleted by force.
func TestAPodThatIsDeletedWhileItStartsCountsNoMore(t *testing.T) {
	t.Parallel()
	s := aStarts()
	enforce(t, s.Policies)
	sandbox := &api.PodSandbox{Id: "s", Uid: "u", Namespace: "default", Name: "forced", Labels: map[string]string{"throttle": "t1"}}
	s.Runtime.Sandbox(time.Now(), sandbox, podwatch.Pod{}, false, false)
	s.Runtime.ContainerStarted(sandbox, &api.Container{Id: "c", PodSandboxId: "s", Name: "app"})
	running := func() (pods int64) {
		for _, g := range s.Limiter.Groups(time.Now()) {
			pods += g.Running.Pods
		}
		return pods
	}
	require.EqualValues(t, 1, running())
	pod := podwatch.Pod{UID: "u", Namespace: "default", Name: "forced"}
	s.regroup(time.Now(), pod, true)
	s.Ledger.countRunning(time.Now(), "u", pod) // as the runtime tells it in between
	s.Ledger.forgetDeleted(time.Now(), "u")
	assert.Zero(t, running())
}

func TestAPanicLeavesTheNextOneItsLock(t *testing.T) {
	t.Parallel()
	s := aStarts()
	s.Ledger.book = nil // to take note of a pod panics
	require.Panics(t, func() {
		s.Runtime.ContainerStarted(&api.PodSandbox{Uid: "uid"}, &api.Container{Id: "id"})
	})
	require.True(t, s.Ledger.mu.TryLock())
	s.Ledger.mu.Unlock()
}
