package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes and maxPages bound the scrapes, and the requests for what the page
// shows, that are answered at a time.
const (
	maxScrapes = 4
	maxPages   = 8
)

// aliveTimeout is how long the question whether it is alive waits for the daemon: on a node that is short
// of everything it is slow, and a restart does not help there.
const aliveTimeout = 8 * time.Second

// ServeHTTP answers at the TCP address, until ctx ends, and then returns nil:
// /metrics with what reg gathers, /healthz with 200 while the daemon works on, and
// /readyz with 200 when pods are paced, by this daemon or by one that it stands by
// for, else 503 and why they are not; / with a page for people, and /status.json
// with the [Overview] that it shows. It blocks.
// It fails at once where it cannot listen.
func ServeHTTP(ctx context.Context, addr string, p Provider, reg prometheus.Gatherer) error {
	var listener net.ListenConfig
	l, err := listener.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for metrics and health: %w", err)
	}
	return serveCrowded(ctx, l, httpHandler(p, reg))
}

// ServeTLS answers at the TCP address, by TLS, until ctx ends, and then returns nil. It bounds connections and requests
// as [ServeHTTP] does. It blocks, and fails at once where it cannot listen.
func ServeTLS(ctx context.Context, addr string, config *tls.Config, h http.Handler) error {
	var listener net.ListenConfig
	l, err := listener.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen by TLS: %w", err)
	}
	return serveCrowded(ctx, tls.NewListener(l, config), h)
}

// serveCrowded answers where everybody can connect.
func serveCrowded(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := newServer(h)
	bound(srv, maxConns)
	return serve(ctx, l, srv)
}

func httpHandler(p Provider, reg prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		Timeout:             requestTimeout / 2,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { sayWhether(w, alive(r, p)) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := p.Ready(); errors.Is(err, ErrStandby) {
			say(w, http.StatusOK, "standby: "+err.Error())
		} else {
			sayWhether(w, err)
		}
	})
	mux.HandleFunc("GET /{$}", servePage)
	mux.HandleFunc("GET /status.json", few(maxPages, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		answer(w, http.StatusOK, NewOverview(statusOf(p), p.Timeline()))
	}))
	return mux
}

// sayWhether says ok, or the error.
func sayWhether(w http.ResponseWriter, err error) {
	if err != nil {
		say(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	say(w, http.StatusOK, "ok")
}

func say(w http.ResponseWriter, code int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	// The peer may be gone: that is not an error of this server.
	_, _ = io.WriteString(w, line+"\n")
}
