package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// node is a Provider over the limiter of the herd.
type node struct {
	mu      sync.Mutex
	limiter *throttle.Limiter
	unready error
	stuck   error
	off     time.Duration
}

// set changes n while it is served.
func (n *node) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (n *node) SwitchOff(span time.Duration) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.off = span
	return at(0).Add(span)
}

func (n *node) Admit(uid string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.limiter.StartAnyway(at(15), uid, reasons.ByHand)
}

func (n *node) Alive(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stuck
}

func (n *node) Status() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := NewStatus(at(15), n.limiter.Snapshot(at(15)), n.limiter.Recent())
	s.Node, s.Standalone = "node-1", true
	return s
}

func (n *node) Costs() Costs {
	return Costs{Machine: costs.Machine{CPU: "Z80", Cores: 2}, Costs: map[string]costs.Cost{"node": {Count: 3, CPU: costs.Figure{Mean: 4}}}}
}

func (n *node) Ready() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unready
}

// socketIn returns a path that is short enough for a socket, for any TMPDIR.
func socketIn(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pp")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "run", "admin.sock")
}

// dial connects to the socket, until the test ends.
func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	return conn
}

// serveNode runs a server until the test ends, and returns once it answers.
func serveNode(t *testing.T, n *node) (path string, stop func() error) {
	t.Helper()
	path = socketIn(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ServeAdmin(ctx, rundir.Serve, path, n, n) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { assert.NoError(t, stop()) })
	require.Eventually(t, func() bool {
		_, err := NewClient(path).Status(t.Context())
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	return path, stop
}

func TestClientGetsTheProvidersAnswers(t *testing.T) {
	t.Parallel()
	n := &node{limiter: herd(t)}
	path, _ := serveNode(t, n)
	client := NewClient(path)

	s, err := client.Status(t.Context())
	require.NoError(t, err)
	want := n.Status()
	want.Ready = true
	assert.Equal(t, want, s)

	learned, err := client.Costs(t.Context())
	require.NoError(t, err)
	assert.Equal(t, n.Costs(), learned)
}

func TestAnAdministratorSwitchesOffAndAdmits(t *testing.T) {
	t.Parallel()
	n := &node{limiter: herd(t)}
	path, _ := serveNode(t, n)
	client := NewClient(path)

	until, err := client.SwitchOff(t.Context(), MaxOff)
	require.NoError(t, err)
	assert.True(t, until.Equal(at(0).Add(MaxOff)), until)
	for _, wrong := range []time.Duration{-time.Second, MaxOff + time.Second} {
		_, err = client.SwitchOff(t.Context(), wrong)
		require.ErrorContains(t, err, "must be from 0s to 24h0m0s")
	}
	assert.Equal(t, MaxOff, n.off)

	waiting := n.Status().Waiting[0]
	require.NoError(t, client.Admit(t.Context(), waiting.UID))
	require.EqualError(t, client.Admit(t.Context(), waiting.UID), "the daemon answers: nothing holds the pod now")
	require.Error(t, client.Admit(t.Context(), "unknown"))
	w, err := n.Status().Why(waiting.Namespace, waiting.Name)
	require.NoError(t, err)
	assert.Equal(t, reasons.ByHand, w.Admission)
}

// Every process of the node reaches the server of the metrics.
func TestOnlyTheSocketChangesTheDaemon(t *testing.T) {
	t.Parallel()
	path, _ := serveNode(t, &node{limiter: herd(t)})
	for _, target := range []string{"/v1/off?for=1h", "/v1/admit?uid=a"} {
		answer, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+target, http.NoBody)
		httpHandler(&node{limiter: herd(t)}, prometheus.NewRegistry()).ServeHTTP(answer, r)
		assert.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, answer.Code, target)
		_, err := NewClient(path).call(t.Context(), http.MethodGet, target)
		require.ErrorContains(t, err, "Method Not Allowed")
	}
}

func TestNotReadyIsPartOfTheStatus(t *testing.T) {
	t.Parallel()
	path, _ := serveNode(t, &node{limiter: herd(t), unready: errors.New("no NRI socket")})
	s, err := NewClient(path).Status(t.Context())
	require.NoError(t, err)
	assert.False(t, s.Ready)
	assert.Equal(t, "no NRI socket", s.NotReady)
}

// The page of a daemon in standby must not say that pods start unpaced.
func TestPodsArePacedOnStandby(t *testing.T) {
	t.Parallel()
	s := statusOf(&node{limiter: herd(t), unready: fmt.Errorf("%w: process 7", ErrStandby)})
	assert.True(t, s.Ready)
	assert.Equal(t, "another daemon paces the pods of this node: process 7", s.NotReady)
	assert.Contains(t, page, "by(\"alarm\").hidden = !s.notReady;", "the page shows that")
}

func TestAFaultInTheAnswerIsAnErrorWithItsText(t *testing.T) {
	t.Parallel()
	n := &node{limiter: herd(t)}
	path, _ := serveNode(t, n)
	client := NewClient(path)
	require.NoError(t, client.Alive(t.Context()))
	_, err := ask[Status](t.Context(), client, http.MethodGet, "/v9/future")
	require.EqualError(t, err, "the daemon answers: 404 page not found")

	n.set(func() { n.stuck = errors.New("out of order") })
	require.EqualError(t, client.Alive(t.Context()), "the daemon answers: out of order")
}

func TestManyClientsAtOnce(t *testing.T) {
	t.Parallel()
	path, _ := serveNode(t, &node{limiter: herd(t)})
	var wg sync.WaitGroup
	for range 4 * maxConns {
		wg.Go(func() {
			client := NewClient(path)
			client.http.Timeout = 0 // it takes as long as all clients before it
			_, err := client.Status(t.Context())
			assert.NoError(t, err)
		})
	}
	wg.Wait()
}

func TestSocketIsPrivateAndGoesWithTheServer(t *testing.T) {
	t.Parallel()
	path, stop := serveNode(t, &node{limiter: herd(t)})
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSocket|0o600, info.Mode())
	dir, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.Equal(t, os.ModeDir|0o700, dir.Mode())

	require.NoError(t, stop())
	_, err = os.Lstat(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = NewClient(path).Status(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestIdleConnectionDoesNotDelayTheStop(t *testing.T) {
	t.Parallel()
	path, stop := serveNode(t, &node{limiter: herd(t)})
	conn := dial(t, path)
	_, err := conn.Write([]byte("GET /v1/sta"))
	require.NoError(t, err)
	require.NoError(t, stop())
}

// panicking is a listener with a fault.
type panicking struct{ net.Listener }

func (panicking) Accept() (net.Conn, error) { panic("broken") }

func TestAPanicInAcceptReachesTheCaller(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	assert.PanicsWithValue(t, "broken", func() { _ = serve(t.Context(), panicking{l}, newServer(adminHandler(&node{}, nil))) })
	require.ErrorIs(t, l.Close(), net.ErrClosed, "the server has closed the listener")
}

// piped is a listener with one connection.
type piped struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l *piped) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conn:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *piped) Addr() net.Addr { return &net.UnixAddr{Name: "piped"} }

func (l *piped) Close() error { close(l.closed); return nil }

func TestARequestUnderWayIsAnsweredWhenTheServerStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		client, server := net.Pipe()
		l := &piped{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
		l.conn <- server
		ended := make(chan error, 1)
		go func() {
			ended <- serve(ctx, l, newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				stop()
				time.Sleep(drainTimeout / 2)
				_, _ = io.WriteString(w, "answered\n")
			})))
		}()
		_, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, "answered\n", string(body))
		require.NoError(t, <-ended)
	})
}

// The socket at which users ask about pods is for every user, and answers nothing else.
func TestAtItsOwnSocketOnlyPodsCanBeAskedAbout(t *testing.T) {
	t.Parallel()
	n, path := &node{limiter: herd(t)}, socketIn(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ServeWhy(ctx, path, n) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	client, waiting := NewClient(path), n.Status().Waiting[0]
	require.Eventually(t, func() bool {
		_, err := client.Why(t.Context(), waiting.Namespace, waiting.Name)
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	socket, err := os.Lstat(path)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSocket|0o666, socket.Mode())

	got, err := client.Why(t.Context(), waiting.Namespace, waiting.Name)
	require.NoError(t, err)
	want, err := n.Status().Why(waiting.Namespace, waiting.Name)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	_, err = client.Why(t.Context(), waiting.Namespace, "unknown")
	require.ErrorIs(t, err, ErrUnknownPod)
	_, err = client.Status(t.Context())
	require.EqualError(t, err, "the daemon answers: 404 page not found")
	require.EqualError(t, client.Admit(t.Context(), waiting.UID), "the daemon answers: 404 page not found")
	_, err = client.SwitchOff(t.Context(), time.Minute)
	require.EqualError(t, err, "the daemon answers: 404 page not found")
}

// Each question makes the status of the whole node, and every user who can reach the socket may ask.
func TestQuestionsAboutPodsHaveABound(t *testing.T) {
	t.Parallel()
	n := &node{limiter: throttle.New(at(0), throttle.Settings{})}
	h := whyHandler(n)
	ask := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/why/default/pod", http.NoBody))
		return w.Code
	}
	n.mu.Lock() // nobody gets an answer
	answers := make(chan int, 20)
	for range cap(answers) {
		go func() { answers <- ask() }()
	}
	for range cap(answers) - maxWhys {
		assert.Equal(t, http.StatusServiceUnavailable, <-answers)
	}
	n.mu.Unlock()
	for range maxWhys {
		assert.Equal(t, http.StatusNotFound, <-answers)
	}
	assert.Equal(t, http.StatusNotFound, ask())
}
