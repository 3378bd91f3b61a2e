package nri

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/ttrpc"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// heard is a Handler that records its calls, and panics if a test makes it.
type heard struct {
	Handler     // for the calls that no test makes
	reconnected func()
	faults      logrus.Fields // what Connected returns
	call        func()
	panicked    []string
	pods        []*api.PodSandbox // the pods of the calls that panicked
	took        []string
	delayed     []Delay
	duringStop  int
}

func (h *heard) Connected(string, string, time.Duration) logrus.Fields { return h.faults }
func (h *heard) Lost(error)                                            {}
func (h *heard) Delayed(reason Delay, _ error)                         { h.delayed = append(h.delayed, reason) }
func (h *heard) RegistersDuringStop()                                  { h.duringStop++ }
func (h *heard) Reconnected()                                          { h.reconnected() }
func (h *heard) Took(_ time.Time, name string, _ time.Duration)        { h.took = append(h.took, name) }
func (h *heard) Panicked(part string, _ any, pod *api.PodSandbox) {
	h.panicked, h.pods = append(h.panicked, part), append(h.pods, pod)
}
func (h *heard) Synchronize([]*api.PodSandbox, []*api.Container) { h.call() }
func (h *heard) RunPodSandbox(context.Context, *api.PodSandbox) error {
	h.call()
	return nil
}

// aConnection returns a connection that does not run, and its log.
func aConnection() (*Connection, *logtest.Hook) {
	log, logged := logtest.NewNullLogger()
	return New(Options{Handler: &heard{}, Log: log}), logged
}

// call runs a call of the runtime through the interceptor. method is the action of the stub.
func call(t *testing.T, h Handler, name string, request any, method ttrpc.Method) (reply any, err error) {
	t.Helper()
	log, _ := logtest.NewNullLogger()
	c := New(Options{Handler: h, Log: log})
	decode := func(any) error { return nil }
	return c.intercept(newLateAnswers(c.lateAfter))(t.Context(), decode, &ttrpc.UnaryServerInfo{FullMethod: "/nri.pkg.api.v1alpha1.Plugin/" + name},
		func(ctx context.Context, decode func(any) error) (any, error) {
			require.NoError(t, decode(request))
			return method(ctx, decode)
		})
}

func TestAHandlerThatPanicsLetsThePodStart(t *testing.T) {
	t.Parallel()
	h := &heard{call: func() { panic("broken") }}
	p := &plugin{Handler: h}
	pod := &api.PodSandbox{Name: "web"}
	reply, err := call(t, h, "RunPodSandbox", &api.RunPodSandboxRequest{Pod: pod}, func(ctx context.Context, _ func(any) error) (any, error) {
		return nil, p.RunPodSandbox(ctx, pod)
	})
	require.NoError(t, err, "an error would fail the pod")
	assert.NotNil(t, reply)
	assert.Equal(t, []string{"RunPodSandbox"}, h.panicked)
	assert.Equal(t, []*api.PodSandbox{pod}, h.pods)
	assert.Equal(t, []string{"RunPodSandbox"}, h.took)
}

func TestACallOfAnOldRuntimeHasTheSameName(t *testing.T) {
	t.Parallel()
	h := &heard{}
	pod := &api.PodSandbox{Name: "web"}
	_, err := call(t, h, "StateChange", &api.StateChangeEvent{Event: api.Event_POST_START_CONTAINER, Pod: pod},
		func(context.Context, func(any) error) (any, error) { panic("broken") })
	require.NoError(t, err)
	assert.Equal(t, []string{"PostStartContainer"}, h.took)
	assert.Equal(t, []string{"PostStartContainer"}, h.panicked)
	assert.Equal(t, []*api.PodSandbox{pod}, h.pods)
}

func TestAConnectionIsSynchronizedAlsoAfterAPanic(t *testing.T) {
	t.Parallel()
	h := &heard{call: func() { panic("broken") }}
	log, _ := logtest.NewNullLogger()
	c := New(Options{Handler: h, Log: log})
	p := &plugin{Handler: h, connection: c, number: c.begin(), listed: func() {}}
	_, err := call(t, h, "Synchronize", &api.SynchronizeRequest{}, func(ctx context.Context, _ func(any) error) (any, error) {
		return p.Synchronize(ctx, nil, nil)
	})
	require.NoError(t, err)
	assert.True(t, c.State().Synchronized)
	assert.Equal(t, []*api.PodSandbox{nil}, h.pods)
}

// journald prints the message without the fields.
func TestTheRegistrationIsLoggedWithTheRuntimesFaults(t *testing.T) {
	t.Parallel()
	log, logged := logtest.NewNullLogger()
	c := New(Options{Handler: &heard{faults: logrus.Fields{"no_refusal_at_sandbox": "it leaks", "no_gate": "it hangs"}}, Log: log})
	require.NoError(t, c.configured(c.begin(), "containerd", "2.2.5", Timeouts{Request: time.Second, Registration: 5 * time.Second}))
	assert.Equal(t, "registered with the runtime containerd 2.2.5, which waits for an answer for 1s; no gate: it hangs; no refusal at sandbox: it leaks", logged.LastEntry().Message)
	assert.Equal(t, logrus.Fields{
		"runtime": "containerd", "runtime_version": "2.2.5", "request_timeout_ms": int64(1000), "registration_timeout_ms": int64(5000), "no_gate": "it hangs", "no_refusal_at_sandbox": "it leaks",
	}, logged.LastEntry().Data)
}

func TestTimeoutsOfTheRuntimeThatDoHarm(t *testing.T) {
	t.Parallel()
	for timeout, says := range map[time.Duration]string{
		0: "", time.Second - 1: "starts pods unpaced", time.Second: "", 2 * time.Second: "", lateMost: "", lateMost + 1: "holds up all pods",
	} {
		timeouts := Timeouts{Request: timeout}
		c, logged := aConnection()
		require.NoError(t, c.configured(c.begin(), "containerd", "2.4.2", timeouts))
		assert.Equal(t, timeouts, c.State().Timeouts)
		if says == "" {
			assert.Empty(t, timeouts.Warning(), timeout)
			assert.Len(t, logged.AllEntries(), 1, timeout)
			continue
		}
		assert.Contains(t, timeouts.Warning(), says, timeout)
		assert.Equal(t, timeouts.Warning(), logged.LastEntry().Message)
	}
}

func TestAConnectionThatEndsDuringItsReportIsNotConnected(t *testing.T) {
	t.Parallel()
	h := &heard{}
	log, _ := logtest.NewNullLogger()
	c := New(Options{Handler: h, Log: log})
	h.reconnected = func() { c.end(time.Now()) }
	c.lose(errClosed)
	number := c.begin()
	require.NoError(t, c.configured(number, "containerd", "2.4.2", Timeouts{Request: time.Second}))
	c.becameSynchronized(number)
	require.ErrorIs(t, c.Paces(), errNotConnected)
}

func TestARuntimeThatNeverConfiguresThePluginIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := aConnection()
		conn := &watchedConn{closed: make(chan struct{})}
		never := newLateAnswers(func() time.Duration { return 0 })
		begin := time.Now()
		require.ErrorIs(t, c.watch(t.Context(), conn, never), errSilent)
		assert.Equal(t, registrationLimit, time.Since(begin))

		number := c.begin()
		require.NoError(t, c.configured(number, "containerd", "2.4.2", Timeouts{Request: time.Second}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, c.watch(ctx, conn, never), "after the configuration, the list of pods may take longer")
		err := c.Paces()
		require.ErrorIs(t, err, errNotSynced)
	})
}

func TestLateReportsOfAnEndedConnectionDoNotCount(t *testing.T) {
	t.Parallel()
	c, _ := aConnection()
	number := c.begin()
	require.NoError(t, c.configured(number, "containerd", "2.4.2", Timeouts{Request: time.Second}))
	assert.False(t, c.end(time.Now()).synchronized)
	c.becameSynchronized(number)
	err := c.Paces()
	require.Error(t, err, "an ended connection must not make it ready")
	require.ErrorIs(t, c.configured(number, "containerd", "2.4.2", Timeouts{Request: time.Second}), errClosed)
}

func TestRepeatedFaultsAreLoggedRarely(t *testing.T) {
	t.Parallel()
	c, logged := aConnection()
	now0 := time.Unix(1000, 0)
	for i := range 100 {
		c.warn(now0.Add(time.Duration(i)*time.Second), errSilent, time.Second)
	}
	c.warn(now0.Add(2*time.Minute), errClosed, time.Second)
	c.warn(now0.Add(2*time.Minute+remindEvery), errClosed, time.Second)
	warnings := 0
	for _, e := range logged.AllEntries() {
		if e.Level == logrus.WarnLevel {
			warnings++
		}
	}
	assert.Equal(t, 3, warnings)
}
