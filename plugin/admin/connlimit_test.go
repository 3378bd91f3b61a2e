package admin

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// silent is the number of silent connections. probeWaits is how long a probe waits for its answer. It is longer than
// a silent connection may live, so a slow machine does not decide the result. It is shorter than the time that all
// silent connections would take in turn.
const (
	silent     = 500
	probeWaits = 3 * requestTimeout
)

// serveCrowd serves at an address of the loopback until the test ends.
func serveCrowd(t *testing.T) (addr string) {
	t.Helper()
	addr = unused(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended, n := make(chan error, 1), &node{limiter: herd(t)}
	go func() { ended <- ServeHTTP(ctx, addr, n, prometheus.NewRegistry()) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	require.Eventually(t, func() bool {
		_, _, err := get(t, "http://"+addr+"/healthz")
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	return addr
}

// hold opens connections to addr until the test ends. Each of them sends only this part of a request.
func hold(t *testing.T, addr, request string) {
	t.Helper()
	var d net.Dialer
	for range silent {
		conn, err := d.DialContext(t.Context(), "tcp", addr)
		require.NoError(t, err)
		_, _ = conn.Write([]byte(request)) // the server may have closed it
		t.Cleanup(func() { _ = conn.Close() })
	}
}

func TestProbesAreAnsweredBesideSilentConnections(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"nothing": "", "half a header": "GET /metrics HT", "a header, and no body": "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n",
		"many, and reads nothing": string(pipelined(200)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := serveCrowd(t)
			hold(t, addr, request)
			client := http.Client{Timeout: probeWaits, Transport: &http.Transport{DisableKeepAlives: true}}
			for _, path := range []string{"/healthz", "/readyz"} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, http.NoBody)
				require.NoError(t, err)
				resp, err := client.Do(req)
				require.NoError(t, err, path)
				require.NoError(t, resp.Body.Close())
				assert.Equal(t, http.StatusOK, resp.StatusCode, path)
			}
		})
	}
}

func pipelined(n int) (all []byte) {
	for range n {
		all = append(all, "GET /status.json HTTP/1.1\r\nHost: a\r\n\r\n"...)
	}
	return all
}

// peer is a connection from an address.
type peer struct {
	net.Conn
	from   string
	closed bool
}

func (p *peer) RemoteAddr() net.Addr { return p }
func (p *peer) Network() string      { return "tcp" }
func (p *peer) String() string       { return p.from + ":1" }
func (p *peer) Close() error         { p.closed = true; return nil }

// The client with the most connections loses one: its oldest connection without a request.
func TestTheClientWithTheMostConnectionsLosesOne(t *testing.T) {
	t.Parallel()
	c := &connLimit{most: 3, conns: map[net.Conn]*openConn{}}
	kubelet, asks, idle, newest := &peer{from: "127.0.0.1"}, &peer{from: "10.0.0.9"}, &peer{from: "10.0.0.9"}, &peer{from: "10.0.0.9"}
	c.opened(kubelet)
	c.opened(asks)
	c.countBusy(asks, 1)
	c.opened(idle)
	c.opened(newest)
	assert.Equal(t, []bool{false, false, true, false}, []bool{kubelet.closed, asks.closed, idle.closed, newest.closed})

	c.countBusy(newest, 1)
	last := &peer{from: "10.0.0.8"}
	c.opened(last)
	assert.True(t, asks.closed, "if all of them have requests, the oldest one closes")
	assert.False(t, kubelet.closed || last.closed || newest.closed)
	c.closed(last)
	c.opened(&peer{from: "10.0.0.7"})
	assert.False(t, kubelet.closed || newest.closed, "no connection closes while there is room")
}
