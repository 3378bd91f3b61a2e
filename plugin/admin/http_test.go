package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func get(t *testing.T, url string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func TestHealthAndMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	starts := prometheus.NewCounter(prometheus.CounterOpts{Name: "pod_pacemaker_starts_total", Help: "Starts."})
	reg.MustRegister(starts)
	starts.Inc()
	n := &node{unready: errors.New("not connected to containerd")}
	srv := httptest.NewServer(httpHandler(n, reg))
	defer srv.Close()

	standby := fmt.Errorf("%w: process 7", ErrStandby)
	for _, c := range []struct {
		unready, stuck error
		path           string
		code           int
		body           string
	}{
		{unready: n.unready, path: "/healthz", code: http.StatusOK, body: "ok\n"},
		{unready: n.unready, path: "/readyz", code: http.StatusServiceUnavailable, body: "not connected to containerd\n"},
		{unready: n.unready, path: "/nothing", code: http.StatusNotFound, body: "404 page not found\n"},
		// On standby, pods are paced, too.
		{unready: standby, path: "/readyz", code: http.StatusOK, body: "standby: another daemon paces the pods of this node: process 7\n"},
		// A restart may help.
		{stuck: errors.New("the limiter is stuck"), path: "/healthz", code: http.StatusServiceUnavailable, body: "the limiter is stuck\n"},
		{path: "/readyz", code: http.StatusOK, body: "ok\n"},
	} {
		n.set(func() { n.unready, n.stuck = c.unready, c.stuck })
		code, body, err := get(t, srv.URL+c.path)
		require.NoError(t, err)
		assert.Equal(t, c.code, code, c.path)
		assert.Equal(t, c.body, body, c.path)
	}
	code, body, err := get(t, srv.URL+"/metrics")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "pod_pacemaker_starts_total 1\n")
}

// hosts is the number of addresses that unused has returned.
var hosts atomic.Uint32

// unused returns an address at which nobody listens. Its host belongs to this process and this call alone, so neither
// another process nor another test takes the port meanwhile.
func unused(t *testing.T) (addr string) {
	t.Helper()
	own := net.IPv4(127, 83+byte(hosts.Add(1)), byte(os.Getpid()>>8), byte(os.Getpid()))
	l, err := net.Listen("tcp", net.JoinHostPort(own.String(), "0"))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// A page of another site whose name resolves to the node (DNS rebinding) reads nothing.
func TestOnlyRequestsToAnAddressOrLocalhostAreAnswered(t *testing.T) {
	t.Parallel()
	h := httpHandler(&node{limiter: herd(t)}, prometheus.NewRegistry())
	for host, want := range map[string]int{
		"127.0.0.1:9464": http.StatusOK, "[::1]:9464": http.StatusOK, "localhost": http.StatusOK, "localhost:9464": http.StatusOK, "10.0.0.7:9464": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest, "evil.example:9464": http.StatusMisdirectedRequest, "localhost.evil.example": http.StatusMisdirectedRequest,
		"127.0.0.1.evil.example:9464": http.StatusMisdirectedRequest, "": http.StatusMisdirectedRequest,
	} {
		for _, path := range []string{"/healthz", "/metrics", "/status.json", "/"} {
			r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), httptest.NewRecorder()
			r.Host = host
			h.ServeHTTP(w, r)
			assert.Equal(t, want, w.Code, "%q %s", host, path)
		}
	}
}

func TestServeHTTPUntilTheEnd(t *testing.T) {
	t.Parallel()
	// A port that another process uses is an error at once. Once it is free, it is served.
	l, err := net.Listen("tcp", unused(t))
	require.NoError(t, err)
	addr := l.Addr().String()
	require.ErrorContains(t, ServeHTTP(t.Context(), addr, &node{}, prometheus.NewRegistry()), addr)
	require.NoError(t, l.Close())

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ServeHTTP(ctx, addr, &node{}, prometheus.NewRegistry()) }()
	require.Eventually(t, func() bool {
		code, _, err := get(t, "http://"+addr+"/healthz")
		return err == nil && code == http.StatusOK
	}, time.Minute, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}
