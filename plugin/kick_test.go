package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// kickStage is a kicker with a limiter, and a clock.
type kickStage struct {
	*kicker
	t   *testing.T
	now time.Time
}

func newKickStage(t *testing.T, s throttle.Settings) *kickStage {
	t.Helper()
	now := time.Unix(1_800_000_000, 0)
	k := &kicker{
		limiter: throttle.New(now, s), metrics: newMetrics(), log: discard(), wake: func() {},
		bound: rate.NewLimiter(rate.Every(kicksEvery), kickBurst),
		queue: make(chan kick, mostQueuedKicks), pods: map[string]*kicked{},
	}
	return &kickStage{kicker: k, t: t, now: now}
}

// asks has kubelet come for a pod, which is refused; gated: it may wait in the gate.
func (s *kickStage) asks(uid string, gated bool) {
	s.t.Helper()
	ticket := s.limiter.Join(s.now, throttle.Request{UID: uid})
	s.came(s.now, uid)
	require.False(s.t, ticket.TryStart(s.now).Admitted, uid)
	s.refused(s.now, uid, "default/"+uid, gated)
}

func (s *kickStage) starts(uid string) {
	s.t.Helper()
	s.came(s.now, uid)
	require.True(s.t, s.limiter.Join(s.now, throttle.Request{UID: uid}).TryStart(s.now).Admitted, uid)
}

func (s *kickStage) ends(uid string) { s.limiter.Lookup(uid).End(s.now, throttle.Ready) }

// kicks looks, and gives who was kicked.
func (s *kickStage) kicks() (uids []string, next time.Duration) {
	at := s.look(s.now, true)
	if !at.IsZero() {
		next = at.Sub(s.now)
	}
	for {
		select {
		case one := <-s.queue:
			assert.Equal(s.t, "default/"+one.uid, one.title)
			uids = append(uids, one.uid)
		default:
			return uids, next
		}
	}
}

func (s *kickStage) requireKicks(want ...string) {
	s.t.Helper()
	got, _ := s.kicks()
	require.Equal(s.t, want, got)
}

func (s *kickStage) pass(d time.Duration) { s.now = s.now.Add(d) }

func TestTheFirstInLineIsKickedOnceASlotIsFree(t *testing.T) {
	t.Parallel()
	s := newKickStage(t, throttle.Settings{MaxConcurrent: 2})
	s.starts("one")
	s.starts("two")
	for _, uid := range []string{"a", "b", "c"} {
		s.asks(uid, false)
	}
	s.requireKicks()
	s.ends("one")
	s.requireKicks("a")
	s.requireKicks() // it is on its way
	s.ends("two")
	s.requireKicks("b")
	s.starts("a")
	s.starts("b")
	s.pass(kickSweep)
	s.requireKicks()
	assert.Len(t, s.pods, 1, "those that start are forgotten")
	assert.Zero(t, s.look(s.now, false))
	assert.Empty(t, s.pods, "nobody is held any more")
}

func TestOneThatDoesNotComeLetsAnotherBeKicked(t *testing.T) {
	t.Parallel()
	s := newKickStage(t, throttle.Settings{MaxConcurrent: 1})
	s.starts("one")
	s.asks("a", false)
	s.asks("b", false)
	s.ends("one")
	s.requireKicks("a")
	_, next := s.kicks()
	require.Equal(t, kickComes, next)
	for range 3 { // it is its turn, so that it is tried first
		s.pass(kickComes)
		s.requireKicks("a")
	}
	s.pass(kickComes) // its back-off is longer than that now
	s.requireKicks("b")
}

func TestOneThatComesInVainIsKickedMoreSlowly(t *testing.T) {
	t.Parallel()
	s := newKickStage(t, throttle.Settings{MaxConcurrent: 1})
	s.starts("thief")
	s.asks("a", false)
	var pauses []time.Duration
	last := s.now
	for range 7 {
		s.ends("thief")
		for {
			got, next := s.kicks()
			if len(got) > 0 {
				break
			}
			require.Positive(t, next)
			s.pass(next)
		}
		pauses, last = append(pauses, s.now.Sub(last)), s.now
		s.pass(time.Millisecond)
		s.starts("thief")
		s.asks("a", false)
	}
	require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 16 * time.Second}, pauses)
}

func TestWhoMayWaitInTheGateOrPullsIsNotKicked(t *testing.T) {
	t.Parallel()
	s := newKickStage(t, throttle.Settings{MaxConcurrent: 1})
	s.starts("one")
	s.asks("gated", true)
	s.asks("pulls", false)
	s.asks("refused", false)
	s.came(s.now, "pulls") // its sandbox is let in, and its images are being pulled
	s.ends("one")
	s.requireKicks() // for it may come for the slot within seconds
	s.pass(kickComes)
	s.requireKicks("refused")
}

func TestKicksAreBounded(t *testing.T) {
	t.Parallel()
	s := newKickStage(t, throttle.Settings{MaxConcurrent: 40})
	for i := range 40 {
		s.starts(fmt.Sprint("one", i))
	}
	for i := range 60 {
		s.asks(fmt.Sprint(i), false)
	}
	for i := range 40 {
		s.ends(fmt.Sprint("one", i))
	}
	got, next := s.kicks()
	require.Len(t, got, kickBurst)
	require.Equal(t, kicksEvery, next)
	s.pass(next)
	got, _ = s.kicks()
	require.Len(t, got, 1)
}

func TestTheTimeOfALimitThatOpensIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newKickStage(t, throttle.Settings{FillEvery: 30 * time.Second})
	s.starts("one")
	s.asks("a", false)
	got, next := s.kicks()
	require.Empty(t, got)
	require.InDelta(t, 30, next.Seconds(), 1)
	s.pass(next)
	s.requireKicks("a")
}

func TestAKickPatchesTheAnnotationOfThisVeryPod(t *testing.T) {
	t.Parallel()
	s := newKickStage(t, throttle.Settings{})
	var errs []error
	s.patch = func(_ context.Context, namespace, name string, patch []byte) error {
		assert.Equal(t, "default", namespace)
		assert.Equal(t, "web-0", name)
		var got any
		require.NoError(t, json.Unmarshal(patch, &got))
		assert.Equal(t, map[string]any{"metadata": map[string]any{
			"uid": "u", "annotations": map[string]any{TurnAnnotation: "2027-01-15T08:00:00Z"},
		}}, got)
		err := errs[0]
		errs = errs[1:]
		return err
	}
	log, hook := logtest.NewNullLogger()
	s.log = log
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-0", errors.New("no"))
	errs = []error{nil, denied, denied, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web-0"), errors.New("away")}
	for range len(errs) {
		s.do(t.Context(), kick{uid: "u", title: "default/web-0", turn: s.now})
	}
	var said []string
	for _, e := range hook.AllEntries() {
		if e.Level <= logrus.WarnLevel {
			said = append(said, e.Level.String())
		}
	}
	assert.Equal(t, []string{"error", "warning"}, said, "each cause once")
}

// Somebody may write the pod in the same moment. What went wrong in the end is not said to
// be done.
func TestAKickThatCollidesIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newKickStage(t, throttle.Settings{})
		log, hook := logtest.NewNullLogger()
		s.log = log
		conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web-0", errors.New("it was modified"))
		var errs []error
		s.patch = func(context.Context, string, string, []byte) error {
			err := errs[0]
			errs = errs[1:]
			return err
		}
		kicks := func(outcome string) float64 {
			return testutil.ToFloat64(s.metrics.kicks.WithLabelValues(outcome))
		}
		errs = []error{conflict, conflict, nil}
		s.do(t.Context(), kick{uid: "u", title: "default/web-0", turn: s.now})
		assert.Empty(t, errs)
		assert.Equal(t, []float64{1, 0}, []float64{kicks("done"), kicks("failed")})

		errs = []error{conflict, conflict, conflict}
		s.do(t.Context(), kick{uid: "u", title: "default/web-0", turn: s.now})
		assert.Empty(t, errs, "it is not tried for ever")
		assert.Equal(t, []float64{1, 1}, []float64{kicks("done"), kicks("failed")})
		assert.EqualValues(t, 1, s.count())
		require.NotNil(t, hook.LastEntry())
		assert.Equal(t, logrus.WarnLevel, hook.LastEntry().Level)

		ended, end := context.WithCancel(t.Context())
		end()
		errs = []error{conflict, nil}
		s.do(ended, kick{uid: "u", title: "default/web-0", turn: s.now})
		assert.Len(t, errs, 1, "a daemon that ends does not wait for another try")
	})
}

// The whole way, on a runtime whose shim cannot bear waiting hooks: the pod that is
// first in line is kicked when the slot is free, at the sandbox and at the container.
func TestKubeletIsFetchedForAPodThatCannotWaitInTheGate(t *testing.T) {
	t.Parallel()
	patched := make(chan string, 10)
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Gate = GateNever; o.RefuseAt = RefuseSandbox }),
		kicking(func(name string) error { patched <- name; return nil }))
	n.runKicker()
	holder := n.occupy("holder")
	p := n.pod("first").runs() // it is let up
	_, err := p.create("app")
	require.Error(t, err)
	far := n.pod("stranger")
	require.NoError(t, far.run())
	_, err = far.create("app")
	require.Error(t, err)
	holder.getsReady()
	require.Equal(t, "first", <-patched)
	p.startsNow("app")
	p.becomes(throttle.Starting, throttle.WithinLimits)
	p.getsReady()
	kicks := 2
	for ; <-patched != "stranger"; kicks++ { // who comes after 5 s only is kicked once more
	}
	far.startsNow("app")
	n.eventually("all kicks are counted", func() bool { return int(n.p.kicker.count()) == kicks+len(patched) })
	assert.InDelta(t, n.p.kicker.count(), counted(t, n, "pod_pacemaker_kicks_total"), 0)
}

func TestAPodOfTheGateIsNotFetched(t *testing.T) {
	t.Parallel()
	patched := make(chan string, 10)
	n := newNode(t, oneAtATime, kicking(func(name string) error { patched <- name; return nil }))
	n.runKicker()
	holder := n.occupy("holder")
	never := n.pod("never", func(pod *podwatch.Pod) { pod.RestartPolicy = "Never" }).runs()
	_, err := never.create("app")
	require.Error(t, err, "it is refused, for kubelet would not start it again")
	holder.getsReady()
	require.Equal(t, "never", <-patched)
	assert.Empty(t, patched)
}

// kicking has the daemon kick pods by calling patch with their names, once runKicker
// is called.
func kicking(patch func(name string) error) nodeOption {
	return tuned(func(p *pacer) {
		p.kicker = newKicker(nil, p)
		p.kicker.patch = func(_ context.Context, _, name string, _ []byte) error { return patch(name) }
	})
}

// runKicker runs what kicks pods until the test ends.
func (n *node) runKicker() {
	n.t.Helper()
	ctx, cancel := contextOf(n)
	done := make(chan error, 1)
	go func() { done <- n.p.kicker.run(ctx) }()
	n.t.Cleanup(func() {
		cancel()
		assert.NoError(n.t, <-done)
	})
}
