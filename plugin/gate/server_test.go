package gate_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const hello = "wait 1 pod=u1 container=c1 name=ns/p since=1700000000000001 deadline=1700000100000000\n"

// serve starts a server, which change may adjust.
func serve(t *testing.T, b gate.Backend, change func(*gate.Server)) (path string, logged *logtest.Hook, stop context.CancelFunc) {
	t.Helper()
	path = gatetest.Socket(t)
	l, err := rundir.Listen(path, 0o600)
	require.NoError(t, err)
	logged, stop = serveOn(t, l, b, change)
	return path, logged, stop
}

// serveOn starts a server at a listener. change may adjust it.
func serveOn(t *testing.T, l net.Listener, b gate.Backend, change func(*gate.Server)) (logged *logtest.Hook, stop context.CancelFunc) {
	t.Helper()
	log, logged := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	s := gate.NewServer(b, func() {}, log).WithAliveEvery(time.Hour) // no alive line among those that a test expects
	change(s)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, gatetest.Receive(t, served, "the server stops"))
	})
	return logged, cancel
}

func unchanged(*gate.Server) {}

func dial(t *testing.T, path string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	return c, bufio.NewReader(c)
}

func say(t *testing.T, c net.Conn, line string) {
	t.Helper()
	_, err := c.Write([]byte(line))
	require.NoError(t, err)
}

func hear(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	return line
}

// hearEnd makes sure that the connection ends without another line.
func hearEnd(t *testing.T, r *bufio.Reader) {
	t.Helper()
	rest, err := r.ReadString('\n')
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Empty(t, rest)
}

func TestServerSendsThePaceThenTheVerdict(t *testing.T) {
	t.Parallel()
	b := gatetest.NewBackend()
	path, _, _ := serve(t, b, unchanged)
	for _, tt := range []struct {
		verdict gate.Verdict
		line    string
	}{
		{gate.Verdict{Go: true, Reason: "Admitted"}, "go Admitted\n"},
		{gate.Verdict{Reason: "Other: two\nlines"}, "abort Other: two lines\n"},
		{gate.Verdict{Reason: reasons.Deleted}, "abort Deleted: the pod was deleted while it waited for its turn to start\n"},
	} {
		c, r := dial(t, path)
		say(t, c, hello)
		w := b.Next(t)
		assert.Contains(t, w.Hello.Deadline.String(), " m=", "it has a monotonic reading, so setting the wall clock does not change it")
		assert.WithinDuration(t, time.UnixMicro(1700000100000000), w.Hello.Deadline, 0)
		w.Hello.Deadline = time.Time{}
		assert.Equal(t, gate.Hello{PodUID: "u1", ContainerID: "c1", Name: "ns/p", Since: time.UnixMicro(1700000000000001)}, w.Hello)
		w.SendForecast(time.UnixMicro(1700000050000000), 3, 0)
		assert.Equal(t, "turn 1700000050000000 3\n", hear(t, r))
		w.SendForecast(time.UnixMicro(1700000040000000), 2, 0)
		assert.Equal(t, "turn 1700000040000000 2\n", hear(t, r))
		w.Decide(tt.verdict)
		assert.Equal(t, tt.line, hear(t, r))
		hearEnd(t, r)
		w.AwaitEnd(t)
	}
}

func TestServerAdmitsHooksThatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	b := gatetest.NewBackend()
	path, logged, _ := serve(t, b, unchanged)
	for name, tt := range map[string]struct{ said, answer string }{
		"no hello":          {"GET / HTTP/1.1\r\n", "go NotUnderstood\n"},
		"another version":   {"wait 2 pod=u1 container=c1\n", "go NotUnderstood\n"},
		"no pod":            {"wait 1 container=c1\n", "go NotUnderstood\n"},
		"a bad time":        {"wait 1 pod=u1 container=c1 since=-1\n", "go NotUnderstood\n"},
		"two hellos":        {hello + hello, "go NotUnderstood\n"},
		"a line too long":   {"wait 1 pod=u1 container=c1 more=" + strings.Repeat("x", 4096) + "\n", "go NotUnderstood\n"},
		"no end of line":    {strings.Repeat("x", 1024), "go NotUnderstood\n"},
		"one byte too long": {"wait 1 pod=u1 container=c1 x=" + strings.Repeat("x", 1024-29) + "\n", "go NotUnderstood\n"},
	} {
		c, r := dial(t, path)
		say(t, c, tt.said)
		assert.Equal(t, tt.answer, hear(t, r), name)
		hearEnd(t, r)
	}
	assert.Zero(t, b.Asked())
	for _, e := range logged.AllEntries() {
		assert.Equal(t, logrus.WarnLevel, e.Level, e.Message)
	}
	assert.Len(t, logged.AllEntries(), 8)
}

func TestServerDisconnectsSilentClients(t *testing.T) {
	t.Parallel()
	b := gatetest.NewBackend()
	path, logged, _ := serve(t, b, func(s *gate.Server) { s.With(50*time.Millisecond, 0, 0) })
	for _, said := range []string{"", "wait 1 pod="} {
		c, r := dial(t, path)
		_, _ = c.Write([]byte(said)) // this may already be too late
		hearEnd(t, r)
	}
	assert.Zero(t, b.Asked())
	require.Len(t, logged.AllEntries(), 2)
	assert.Contains(t, fmt.Sprint(logged.LastEntry().Data[logrus.ErrorKey]), "no whole line in 50ms")
}

func TestServerLeavesAWaitingHookBeyondTheHelloTimeout(t *testing.T) {
	t.Parallel()
	b := gatetest.NewBackend()
	const timeout = time.Second
	path := gatetest.Socket(t)
	l, err := rundir.Listen(path, 0o600)
	require.NoError(t, err)
	c, r := dial(t, path)
	say(t, c, hello) // before its timeout begins
	serveOn(t, l, b, func(s *gate.Server) { s.With(timeout, 0, 0) })
	w := b.Next(t)
	select {
	case <-w.Ended:
		t.Fatal("the timeout of the hello ended the wait")
	case <-time.After(timeout + timeout/2):
	}
	w.Decide(gate.Verdict{Go: true})
	assert.Equal(t, "go \n", hear(t, r))
}

func TestServerEndsTheWaitOfAHookThatLeaves(t *testing.T) {
	t.Parallel()
	b := gatetest.NewBackend()
	path, _, _ := serve(t, b, unchanged)
	for _, leave := range []func(net.Conn){
		func(c net.Conn) { require.NoError(t, c.Close()) },
		func(c net.Conn) { say(t, c, "more") },
	} {
		c, _ := dial(t, path)
		say(t, c, hello)
		w := b.Next(t)
		leave(c)
		w.AwaitEnd(t)
	}
}

func TestServerLogsALostVerdict(t *testing.T) {
	t.Parallel()
	b := gatetest.NewBackend()
	b.Deaf = true // the verdict and the hook's end cross each other
	path, logged, _ := serve(t, b, unchanged)
	for _, verdict := range []gate.Verdict{{Go: true, Reason: "WithinLimits"}, {Reason: reasons.Deleted}} {
		logged.Reset()
		c, _ := dial(t, path)
		say(t, c, hello)
		w := b.Next(t)
		require.NoError(t, c.Close())
		w.AwaitEnd(t)
		w.Decide(verdict)
		require.Eventually(t, func() bool { return logged.LastEntry() != nil }, 30*time.Second, time.Millisecond)
		said := logged.LastEntry()
		assert.Equal(t, logrus.InfoLevel, said.Level)
		for field, want := range map[string]any{
			"pod_namespace": "ns", "pod_name": "p", "pod_uid": "u1", "container_id": "c1",
			"go": verdict.Go, "reason": verdict.Reason,
		} {
			assert.Equal(t, want, said.Data[field], field)
		}
		assert.Len(t, said.Data, 7, "the fields of the hook, and the error")
	}

	c, r := dial(t, path)
	logged.Reset()
	say(t, c, hello)
	b.Next(t).Decide(gate.Verdict{Go: true, Reason: "Third"})
	assert.Equal(t, "go Third\n", hear(t, r))
	hearEnd(t, r)
	assert.Empty(t, logged.AllEntries())
}

func TestServerDoesNotWaitForAHookThatDoesNotRead(t *testing.T) {
	t.Parallel()
	b := gatetest.NewBackend()
	path, _, _ := serve(t, b, func(s *gate.Server) { s.With(0, time.Second, 0) })
	stuck, _ := dial(t, path)
	say(t, stuck, hello)
	w := b.Next(t)
	for i := 0; ; i++ { // until its buffer is full and the server gives up
		w.SendForecast(time.UnixMicro(1700000000000000), i, 0)
		select {
		case <-w.Ended:
		case <-time.After(time.Millisecond):
			continue
		}
		break
	}
	c, r := dial(t, path)
	say(t, c, hello)
	b.Next(t).Decide(gate.Verdict{Go: true, Reason: "Other"})
	assert.Equal(t, "go Other\n", hear(t, r))
}

func TestServerThatCannotDecideLetsTheHookAskAgain(t *testing.T) {
	t.Parallel()
	b := gatetest.NewBackend()
	path, logged, _ := serve(t, b, func(s *gate.Server) { s.With(0, 0, time.Millisecond) })
	for what, fail := range map[string]func(*gatetest.Wait){
		"no limiter": func(w *gatetest.Wait) { w.Fail(errors.New("no limiter")) },
		"panic: bug": func(w *gatetest.Wait) { w.Panic("bug") },
	} {
		c, r := dial(t, path)
		say(t, c, hello)
		fail(b.Next(t))
		hearEnd(t, r)
		var said []string
		for _, e := range logged.AllEntries() {
			if err, ok := e.Data[logrus.ErrorKey].(error); ok {
				said = append(said, err.Error())
			}
		}
		assert.Contains(t, strings.Join(said, "\n"), what)
	}
}

// panicsOnce is a log hook that panics at the first line about a hook without a decision.
type panicsOnce struct{ atomic.Bool }

func (*panicsOnce) Levels() []logrus.Level { return logrus.AllLevels }

func (p *panicsOnce) Fire(e *logrus.Entry) error {
	if strings.Contains(e.Message, "without a decision") && p.CompareAndSwap(false, true) {
		panic("bug in the log")
	}
	return nil
}

func TestServerThatPanicsNamesThePod(t *testing.T) {
	t.Parallel()
	b, path := gatetest.NewBackend(), gatetest.Socket(t)
	l, err := rundir.Listen(path, 0o600)
	require.NoError(t, err)
	log, logged := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	log.AddHook(&panicsOnce{})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- gate.NewServer(b, func() {}, log).Serve(ctx, l) }()
	c, r := dial(t, path)
	say(t, c, hello)
	w := b.Next(t)
	stream, ok := c.(*net.UnixConn)
	require.True(t, ok)
	require.NoError(t, stream.CloseWrite())
	w.AwaitEnd(t)
	hearEnd(t, r)
	cancel()
	require.NoError(t, gatetest.Receive(t, served, "the server stops"))
	said := logged.LastEntry()
	assert.Equal(t, "the gate failed while it served the hook of pod ns/p, which will ask again", said.Message)
	assert.Equal(t, "u1", said.Data["pod_uid"])
}

func TestServerStopsWithoutVerdicts(t *testing.T) {
	t.Parallel()
	b := gatetest.NewBackend()
	path, _, stop := serve(t, b, unchanged)
	_, silent := dial(t, path)
	var waiting [2]*bufio.Reader
	for i := range waiting { // both are served at once
		var c net.Conn
		c, waiting[i] = dial(t, path)
		say(t, c, hello)
		b.Next(t)
	}
	stop()
	for _, one := range waiting {
		hearEnd(t, one)
	}
	hearEnd(t, silent)
	assert.Eventually(t, func() bool { _, err := os.Lstat(path); return os.IsNotExist(err) }, 30*time.Second, time.Millisecond)
}

func TestServerThatStopsSendsTheLastTurns(t *testing.T) {
	t.Parallel()
	for range 20 {
		b := gatetest.NewBackend()
		path, _, stop := serve(t, b, unchanged)
		c, r := dial(t, path)
		say(t, c, hello)
		w := b.Next(t)
		for i := range 10 {
			w.SendForecast(time.UnixMicro(1700000000000000), i, 0)
		}
		stop()
		heard := hear(t, r)
		for heard != "turn 1700000000000000 9\n" {
			heard = hear(t, r)
		}
		hearEnd(t, r)
	}
}

func TestServerReturnsWhenItsListenerFails(t *testing.T) {
	t.Parallel()
	l, err := rundir.Listen(gatetest.Socket(t), 0o600)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		served <- gate.NewServer(gatetest.NewBackend(), func() {}, gatetest.Quiet()).Serve(t.Context(), l)
	}()
	require.NoError(t, l.Close())
	require.ErrorIs(t, gatetest.Receive(t, served, "Serve returns"), net.ErrClosed)
}

func TestServerSendsAliveLinesWhileItDecides(t *testing.T) {
	t.Parallel()
	b := gatetest.NewBackend()
	path, logged, _ := serve(t, b, func(s *gate.Server) { s.WithAliveEvery(10 * time.Millisecond) })
	c, r := dial(t, path)
	say(t, c, hello)
	b.Next(t)
	for range 3 {
		assert.Equal(t, "alive\n", hear(t, r))
	}
	b.Stuck.Store(true)
	heard := make(chan string)
	go func() {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				close(heard)
				return
			}
			heard <- line
		}
	}()
	require.Eventually(t, func() bool {
		e := logged.LastEntry()
		return e != nil && e.Level == logrus.ErrorLevel
	}, 30*time.Second, time.Millisecond)
	for quiet := false; !quiet; { // lines that were already on their way
		select {
		case <-heard:
		case <-time.After(100 * time.Millisecond):
			quiet = true
		}
	}
	b.Stuck.Store(false)
	for again := false; !again; { // the first entries may be from before
		assert.Equal(t, "alive\n", <-heard)
		again = logged.LastEntry().Message == "the daemon admits pods again"
	}
	require.NoError(t, c.Close())
	for range heard { // until the end
	}
}

// failing is a listener and a backend. Both fail at first.
type failing struct {
	net.Listener
	*gatetest.Backend
	accepted, asked atomic.Int32
}

func (l *failing) Accept() (net.Conn, error) {
	if l.accepted.Add(1) <= 2 {
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

func (l *failing) Alive(ctx context.Context) error {
	if l.asked.Add(1) == 1 {
		panic("bug in Alive")
	}
	return l.Backend.Alive(ctx)
}

func TestServerContinuesAfterFailures(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	l, err := rundir.Listen(path, 0o600)
	require.NoError(t, err)
	log, logged := logtest.NewNullLogger()
	both := &failing{Listener: l, Backend: gatetest.NewBackend()}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	var panics atomic.Int32
	s := gate.NewServer(both, func() { panics.Add(1) }, log).WithAliveEvery(10 * time.Millisecond)
	go func() { served <- s.Serve(ctx, both) }()

	c, r := dial(t, path)
	say(t, c, hello)
	w := both.Next(t)
	for hear(t, r) != "alive\n" { // until the server decides again
	}
	w.Decide(gate.Verdict{Go: true})
	for hear(t, r) != "go \n" { // alive lines may come before it
	}
	cancel()
	require.NoError(t, gatetest.Receive(t, served, "the server stops"))
	var said []string
	for _, e := range logged.AllEntries() {
		said = append(said, fmt.Sprint(e.Data[logrus.ErrorKey]))
	}
	assert.Equal(t, 1, strings.Count(strings.Join(said, "\n"), "too many open files"), "it is logged once")
	assert.Contains(t, strings.Join(said, "\n"), "panic: bug in Alive")
	assert.EqualValues(t, 1, panics.Load())
}

// A hook takes a daemon for gone that is silent for three times as long.
func TestTheTimeBetweenAliveLines(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 5*time.Second, gate.NewServer(gatetest.NewBackend(), func() {}, gatetest.Quiet()).AliveEvery())
}
