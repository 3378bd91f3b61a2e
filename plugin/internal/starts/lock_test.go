package starts

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// lockWatch fails a test if the lock is held during a call that must not be made under it.
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
	if !l.s.mu.TryLock() {
		assert.Fail(l.t, "the lock is held", who)
		return
	}
	l.s.mu.Unlock()
}

func (l *lockWatch) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook.
func (l *lockWatch) Fire(*logrus.Entry) error { l.free("log"); return nil }

// Under the lock, only the limiter is called. The log, the pod watch and the callbacks of Options are
// not.
func TestTheLockIsFreeDuringOtherCalls(t *testing.T) {
	t.Parallel()
	l := &lockWatch{t: t, calls: map[string]int{}}
	log := discard()
	log.SetLevel(logrus.DebugLevel)
	log.AddHook(l)
	s := aStarts(func(o *Options) {
		o.Log = log
		o.Pods = &asked{get: func(string) { l.free("pod watch") }}
		o.Forgotten = func(string) { l.free("forgotten") }
		o.PoliciesChanged = func(policies.Changes) { l.free("policies changed") }
		o.Round = func(time.Time, []throttle.TicketView) (map[string]bool, time.Time) {
			l.free("round")
			return nil, time.Time{}
		}
	})
	l.s = s
	s.configured(t, "spec: {throttleConfig: {maxConcurrent: {value: 1}}}", throttle.Settings{MaxConcurrent: 1})
	now := time.Now()
	logged := l.calls["log"]
	s.enforce(t, "{selector: {terms: [{namespaceSelector: {matchLabels: {team: a}}}]}, limits: {starting: {pods: 5}}, temporaryOverrides: ["+
		"{begin: \"2000-01-01T00:00:00Z\", end: \"2000-01-02T00:00:00Z\", limits: {starting: {pods: 2}}}]}")
	s.advancePolicies(now.Add(time.Minute)) // the labels of namespaces are still not read
	s.SetNamespaces(now, map[string]map[string]string{"default": {"team": "a"}})
	s.advancePolicies(time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC))
	assert.Equal(t, 3, l.calls["log"]-logged, "the policy has a fault, and none any more, and an override begins")
	for _, uid := range []string{"first", "second"} {
		sandbox := &api.PodSandbox{Id: "s-" + uid, Uid: uid, Namespace: "default", Name: uid, Pid: 7}
		ctr := &api.Container{Id: "c-" + uid, Name: "app", PodSandboxId: sandbox.GetId()}
		s.Sandbox(now, NewSandbox{Sandbox: sandbox, Refusable: true})
		a := s.Container(now, sandbox, ctr, podwatch.Pod{}, HookTerms{})
		a.Ticket.TryStart(now)
		a.Ticket.StartNotHeld(now)
		s.ContainerStarted(sandbox, ctr)
		s.Synchronize([]*api.PodSandbox{sandbox}, []*api.Container{ctr})
		s.round(now)
		s.PodChanged(time.Now(), podwatch.Pod{UID: uid, Namespace: "default", Name: uid}, false)
		s.ContainerStopped(sandbox, ctr)
		s.ContainerRemoved(sandbox, ctr)
		s.SandboxStopped(sandbox)
		s.PodChanged(time.Now(), podwatch.Pod{UID: uid}, true)
		s.SandboxRemoved(sandbox)
	}
	s.SetShutdown(true)
	s.SetShutdown(false)
	s.configured(t, "spec: {mode: Disabled}", throttle.Settings{})
	s.round(now.Add(time.Minute))
	for _, who := range []string{"log", "pod watch", "forgotten", "round", "policies changed"} {
		assert.Positive(t, l.calls[who], who)
	}
}

const t1 = "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {requests: {cpu: 200m}}}}"

func (s *Starts) enforce(t *testing.T, spec string) {
	t.Helper()
	found, err := crd.Parse([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: t1}\nspec: " + spec))
	require.NoError(t, err)
	s.SetPolicies(time.Now(), found.Policies)
}

// A start that was found under way ends with its pod, and is not found again.
func TestAFoundStartEndsWithItsPod(t *testing.T) {
	t.Parallel()
	s := aStarts()
	sandbox := &api.PodSandbox{Id: "s", Uid: "u", Namespace: "default", Name: "ends", Pid: 1 << 22}
	runs := &api.Container{Id: "c", PodSandboxId: "s", Name: "app", State: api.ContainerState_CONTAINER_RUNNING}
	s.Synchronize([]*api.PodSandbox{sandbox}, []*api.Container{runs})
	ticket := s.ledger.limiter.Lookup("u")
	state, reason := ticket.Status()
	require.Equal(t, throttle.Starting, state)
	require.Equal(t, reasons.Adopted, reason)

	s.podDeleted(time.Now(), "u")
	state, reason = ticket.Status()
	assert.Equal(t, throttle.Gone, state, "the start ends with its pod")
	assert.Equal(t, reasons.Deleted, reason)
	s.locked(func(l *ledger) { l.adopt(time.Now(), l.at(Identity{UID: "u"}), podwatch.Pod{}, false) })
	state, _ = s.ledger.limiter.Lookup("u").Status()
	assert.Equal(t, throttle.Gone, state, "no start of a removed pod is found")
}

// A pod that has run for long when the daemon connects is not starting. It counts as running, also for a policy that is
// made later.
func TestAPodThatRanBeforeTheDaemonConnectsCounts(t *testing.T) {
	t.Parallel()
	for _, policyFirst := range []bool{true, false} {
		s := aStarts()
		if policyFirst {
			s.enforce(t, t1)
		}
		sandbox := &api.PodSandbox{Id: "s", Uid: "u", Namespace: "default", Name: "old", Pid: 1 << 22, Labels: map[string]string{"throttle": "t1"}}
		runs := &api.Container{
			Id: "c", PodSandboxId: "s", Name: "app", State: api.ContainerState_CONTAINER_RUNNING, StartedAt: time.Now().Add(-24 * time.Hour).UnixNano(),
		}
		s.Synchronize([]*api.PodSandbox{sandbox}, []*api.Container{runs})
		require.Nil(t, s.ledger.limiter.Lookup("u"))
		if !policyFirst {
			s.PodChanged(time.Now(), podwatch.Pod{UID: "u", Namespace: "default", Name: "old", Facts: &startpolicy.Facts{Labels: ofT1}}, false)
			s.enforce(t, t1)
		}
		groups := s.Groups(time.Now())
		require.Len(t, groups, 1)
		assert.EqualValues(t, 1, groups[0].Running.Pods)
	}
}

// A container may start just when its pod is deleted by force.
func TestAPodThatIsDeletedWhileItStartsDoesNotCount(t *testing.T) {
	t.Parallel()
	s := aStarts()
	s.enforce(t, t1)
	sandbox := &api.PodSandbox{Id: "s", Uid: "u", Namespace: "default", Name: "forced", Labels: map[string]string{"throttle": "t1"}}
	s.Sandbox(time.Now(), NewSandbox{Sandbox: sandbox})
	s.ContainerStarted(sandbox, &api.Container{Id: "c", PodSandboxId: "s", Name: "app"})
	running := func() (pods int64) {
		for _, g := range s.ledger.limiter.Groups(time.Now()) {
			pods += g.Running.Pods
		}
		return pods
	}
	require.EqualValues(t, 1, running())
	pod := podwatch.Pod{UID: "u", Namespace: "default", Name: "forced"}
	s.locked(func(l *ledger) { l.countRunning(time.Now(), l.pods["u"], pod) }) // the runtime reports the pod in between
	s.podDeleted(time.Now(), "u")
	assert.Zero(t, running())
}

func TestAPanicReleasesTheLock(t *testing.T) {
	t.Parallel()
	s := aStarts()
	s.ledger.pods = nil // what adds a pod panics without the map
	require.Panics(t, func() {
		s.ContainerStarted(&api.PodSandbox{Uid: "uid"}, &api.Container{Id: "id"})
	})
	require.True(t, s.mu.TryLock())
	s.mu.Unlock()

	s = aStarts()
	s.ledger.pods = nil // a sandbox needs it when the lock is held
	sandbox := &api.PodSandbox{Uid: "uid"}
	require.Panics(t, func() { s.Sandbox(time.Now(), NewSandbox{Sandbox: sandbox, Refusable: true}) })
	require.True(t, s.mu.TryLock())
	s.mu.Unlock()
}
