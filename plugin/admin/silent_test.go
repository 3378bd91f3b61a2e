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

// silent is the number of silent connections: the server closes those that it accepts, and accepts the others.
const silent = maxConns + 10

// serveCrowd serves at an address of the loopback until the test ends.
func serveCrowd(t *testing.T) (addr string) {
	t.Helper()
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr = l.Addr().String()
	require.NoError(t, l.Close())
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
			client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
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
