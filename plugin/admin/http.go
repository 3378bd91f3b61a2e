package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	maxScrapes = 4 // concurrent requests of /metrics
	maxPages   = 8 // concurrent requests of /status.json
	maxWhys    = 4 // concurrent questions about a pod at the socket for all users; each makes a whole status
)

// aliveTimeout is how long a liveness request waits for the daemon. It is long because a restart does not help a
// daemon that is slow on an overloaded node.
const aliveTimeout = 8 * time.Second

// ServeHTTP serves at the TCP address until ctx ends, and then returns nil. It blocks. If it cannot listen, it returns
// the error at once. It serves:
//
//	/metrics       what reg gathers
//	/healthz       200 while the daemon makes decisions, otherwise 503 and the reason
//	/readyz        200 while this daemon, or one that it stands by for, paces pods, otherwise 503 and the reason
//	/              the page
//	/status.json   the [Overview] that the page shows
//
// It refuses requests whose Host header is a name other than localhost.
func ServeHTTP(ctx context.Context, addr string, p Provider, reg prometheus.Gatherer) error {
	return ServeTCP(ctx, addr, nil, httpHandler(p, reg))
}

// byAddress refuses requests to a host that is neither an address nor localhost. A browser that sends one was led here by
// a page of another site, whose name now resolves to this node (DNS rebinding), and that page could read the answer.
func byAddress(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := url.URL{Host: r.Host}
		if _, err := netip.ParseAddr(asked.Hostname()); err != nil && asked.Hostname() != "localhost" {
			http.Error(w, "this server answers only to its addresses and to localhost", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// ServeTCP serves h at the TCP address until ctx ends, and then returns nil. It uses TLS if config is not nil. It
// limits the duration of a request and the number of connections. It blocks. If it cannot listen, it returns the error
// at once.
func ServeTCP(ctx context.Context, addr string, config *tls.Config, h http.Handler) error {
	var listener net.ListenConfig
	l, err := listener.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	srv := newServer(h)
	limitConns(srv, maxConns)
	return serve(ctx, l, srv)
}

func httpHandler(p Provider, reg prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		Timeout:             requestTimeout / 2,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { writeHealth(w, alive(r, p)) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { writeHealth(w, p.Ready()) })
	mux.HandleFunc("GET /{$}", servePage)
	mux.HandleFunc("GET /status.json", few(maxPages, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		answer(w, newOverview(statusOf(p)))
	}))
	return byAddress(mux)
}

// writeHealth writes 200 and ok, or 503 and the error. On standby it writes 200 and the error. It ignores write errors: they
// mean that the peer is gone.
func writeHealth(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, ErrStandby):
		_, _ = fmt.Fprintf(w, "standby: %v\n", err)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		_, _ = io.WriteString(w, "ok\n")
	}
}
