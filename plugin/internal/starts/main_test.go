package starts

import (
	"context"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// discard returns a logger that writes nothing.
func discard() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// aStarts returns a Starts that does not run and that no limit holds. change adjusts its options.
func aStarts(change ...func(*Options)) *Starts {
	o := Options{
		Server: true, Log: discard(), Waitable: time.Hour, // so that a few pods get a place in the gate before a start has ended
		Roots: usage.Roots{Proc: "/nowhere", Cgroup: "/nowhere"}, Timing: DefaultTiming(),
		Relist: func() time.Duration { return 0 }, PoliciesChanged: func(policies.Changes) {}, Links: Links{
			Round:     func(time.Time, []throttle.TicketView) (map[string]bool, time.Time) { return nil, time.Time{} },
			Forgotten: func(string) {}, Node: func() (string, time.Time) { return "", time.Time{} },
		},
	}
	for _, c := range change {
		c(&o)
	}
	if o.Memory == nil {
		o.Memory = learning.New("", costs.Machine{}, o.Log)
	}
	o.Observer = observe.New(observe.Options{Log: o.Log, Events: &observe.Recorder{}, Nodes: func() int { return 1 }})
	return New(o)
}

// configured puts a configuration in force. The test sets its limits itself.
func (s *Starts) configured(t *testing.T, spec string, settings throttle.Settings) {
	t.Helper()
	parsed, err := crd.Parse([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: test}\n" + spec))
	require.NoError(t, err)
	s.Configure(time.Now(), crd.FromFile(parsed.Config), settings)
}

// locked calls f with the ledger under its lock.
func (s *Starts) locked(f func(l *ledger)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.ledger)
}

// atSandbox returns the pod of a sandbox that the runtime reports.
func (l *ledger) atSandbox(sandbox *api.PodSandbox) *Pod {
	p := l.at(identify(sandbox))
	p.update(sandbox)
	return p
}

// runs starts a container in a sandbox of its own. Both have the name of the pod.
func (s *Starts) runs(now time.Time, uid string, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sandbox := &api.PodSandbox{Id: uid, Uid: uid, Namespace: "default", Name: uid}
	p := s.ledger.atSandbox(sandbox)
	p.setSandbox(uid)
	p.begins(now, &api.Container{Id: uid, Name: "app", PodSandboxId: uid, Pid: uint32(pid)})
}

// exits ends that container.
func (s *Starts) exits(now time.Time, uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.pods[uid].ends(now, &api.Container{Id: uid}, false)
}

// joins makes a pod join the queue.
func (s *Starts) joins(now time.Time, request throttle.Request) *throttle.Ticket {
	p := s.ledger.at(Identity{UID: request.UID, Namespace: "default", Name: request.UID})
	p.ticket = s.ledger.limiter.Join(now, request)
	return p.ticket
}

// adopts makes a pod start since a time.
func (s *Starts) adopts(now time.Time, request throttle.Request, since time.Time) *throttle.Ticket {
	p := s.ledger.at(Identity{UID: request.UID, Namespace: "default", Name: request.UID})
	p.ticket = s.ledger.limiter.Adopt(now, request, since)
	return p.ticket
}

// uids returns the pods that the runtime has reported.
func (l *ledger) uids() (all []string) {
	for uid, p := range l.pods {
		if p.reported {
			all = append(all, uid)
		}
	}
	return all
}

// starts lets a pod start now, in its turn.
func (s *Starts) starts(now time.Time, uid string) *throttle.Ticket {
	t := s.joins(now, throttle.Request{UID: uid, Name: "default/" + uid})
	t.TryStart(now)
	return t
}

// asked is a pod watch whose answers come from a test.
type asked struct {
	get  func(uid string)
	pods map[string]podwatch.Pod
	away bool      // the API server does not answer
	lost time.Time // when it went away; zero: it never answered
	// selects is what SelectBy got last.
	selects func(string, map[string]string) []string
}

func (a *asked) Get(uid string) (podwatch.Pod, bool) {
	if a.get != nil {
		a.get(uid)
	}
	pod, known := a.pods[uid]
	return pod, known
}
func (a *asked) Await(context.Context, string) (podwatch.Pod, bool) { return podwatch.Pod{}, false }
func (a *asked) Healthy() bool                                      { return !a.away }
func (a *asked) HealthySince(t time.Time) bool                      { return !a.away || a.lost.After(t) }

func (a *asked) OnNode() (pods []podwatch.Pod, listed bool) {
	return slices.Collect(maps.Values(a.pods)), !a.away
}
func (a *asked) SelectBy(selects func(string, map[string]string) []string, _ time.Duration) {
	a.selects = selects
}

// endsNow returns why all waits end, and what is closed when that changes.
func (s *Starts) endsNow() (Ends, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.ends(), s.ledger.node.changed
}

func state(t *throttle.Ticket) throttle.State {
	s, _ := t.Status()
	return s
}
