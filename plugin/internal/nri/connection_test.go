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

// heard is a Handler that notes what it is told, and panics where a test says so.
type heard struct {
	back     func()
	sandbox  func()
	panicked []string
	took     []string
}

func (h *heard) Connected(string, string, time.Duration) logrus.Fields { return nil }
func (h *heard) Lost(error)                                            {}
func (h *heard) Back()                                                 { h.back() }
func (h *heard) Took(_ time.Time, name string, _ time.Duration)        { h.took = append(h.took, name) }
func (h *heard) Panicked(part string, _ any, _ *api.PodSandbox) {
	h.panicked = append(h.panicked, part)
}
func (h *heard) Synchronize([]*api.PodSandbox, []*api.Container)      {}
func (h *heard) RunPodSandbox(context.Context, *api.PodSandbox) error { h.sandbox(); return nil }
func (h *heard) StopPodSandbox(*api.PodSandbox)                       {}
func (h *heard) RemovePodSandbox(*api.PodSandbox)                     {}
func (h *heard) PostStartContainer(*api.PodSandbox, *api.Container)   {}
func (h *heard) StopContainer(*api.PodSandbox, *api.Container)        {}
func (h *heard) RemoveContainer(*api.PodSandbox, *api.Container)      {}
func (h *heard) CreateContainer(context.Context, *api.PodSandbox, *api.Container) (*api.Hook, error) {
	return nil, nil
}

// aConnection gives a connection that nothing runs, and what it logs.
func aConnection() (*Connection, *logtest.Hook) {
	log, logged := logtest.NewNullLogger()
	return New(Options{Handler: &heard{}, Log: log}), logged
}

func TestAHandlerThatPanicsLetsThePodGoOn(t *testing.T) {
	t.Parallel()
	h := &heard{sandbox: func() { panic("broken") }}
	p := &plugin{handler: h}
	require.NoError(t, p.RunPodSandbox(t.Context(), &api.PodSandbox{}))
	assert.Equal(t, []string{"RunPodSandbox"}, h.panicked)
	assert.Equal(t, []string{"RunPodSandbox"}, h.took)
}

func TestTheRuntimeGoesOnWhenTheStubPanics(t *testing.T) {
	t.Parallel()
	h := &heard{}
	log, _ := logtest.NewNullLogger()
	c := New(Options{Handler: h, Log: log})
	reply, err := c.intercept(t.Context(), nil, &ttrpc.UnaryServerInfo{FullMethod: "/nri/CreateContainer"},
		func(context.Context, func(any) error) (any, error) { panic("broken") })
	require.NoError(t, err)
	assert.NotNil(t, reply, "an error would fail the pod")
	assert.Equal(t, []string{"/nri/CreateContainer"}, h.panicked)
}

func TestAConnectionThatEndsWhileItsReturnIsToldIsNotCalledConnected(t *testing.T) {
	t.Parallel()
	h := &heard{}
	log, _ := logtest.NewNullLogger()
	c := New(Options{Handler: h, Log: log})
	h.back = func() { c.end(time.Now()) }
	c.lose(errClosed)
	number := c.begin()
	require.NoError(t, c.configured(number, "containerd", "2.4.2", time.Second))
	c.becameSynchronized(number)
	require.ErrorIs(t, c.Paces(), errNotConnected)
}

func TestARuntimeThatNeverConfiguresThePluginIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := aConnection()
		conn := &watchedConn{closed: make(chan struct{})}
		never := newLateAnswers(func() time.Duration { return 0 })
		begin := time.Now()
		require.ErrorIs(t, c.watch(t.Context(), c.begin(), conn, never, make(chan error, 1)), errSilent)
		assert.Equal(t, registrationLimit, time.Since(begin))

		number := c.begin()
		require.NoError(t, c.configured(number, "containerd", "2.4.2", time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, c.watch(ctx, number, conn, never, make(chan error, 1)), "it may take its time to tell what it runs")
		err := c.Paces()
		require.ErrorIs(t, err, errNotSynced)
	})
}

func TestWhatAnEndedConnectionStillSaysDoesNotCount(t *testing.T) {
	t.Parallel()
	c, _ := aConnection()
	number := c.begin()
	require.NoError(t, c.configured(number, "containerd", "2.4.2", time.Second))
	assert.False(t, c.end(time.Now()).synchronized)
	c.becameSynchronized(number)
	err := c.Paces()
	require.Error(t, err, "it is not ready by the word of a connection that is gone")
	require.ErrorIs(t, c.configured(number, "containerd", "2.4.2", time.Second), errClosed)
}

func TestTheSameFaultIsWarnedOfOnceInAWhile(t *testing.T) {
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
