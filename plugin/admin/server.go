package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/socket"
)

const (
	// maxConns bounds the connections to one server.
	maxConns = 64
	// headerTimeout bounds how long a connection takes to send a request's header.
	headerTimeout = 5 * time.Second
	// requestTimeout bounds reading one request and writing its answer.
	requestTimeout = 10 * time.Second
	// drainTimeout bounds the answers under way when a server stops.
	drainTimeout = time.Second
)

// ServeAdmin answers at the unix socket until ctx ends, and then returns nil. It
// blocks. It fails at once where the socket cannot be made. The caller has the lock of
// the run folder: a socket that is there already is replaced.
func ServeAdmin(ctx context.Context, socketPath string, p Provider) error {
	l, err := socket.Listen(socketPath)
	if err != nil {
		return err
	}
	return serve(ctx, netutil.LimitListener(l, maxConns), newServer(adminHandler(p)))
}

func adminHandler(p Provider) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, statusOf(p))
	})
	mux.HandleFunc("GET /v1/why", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		why, err := p.Why(query.Get("namespace"), query.Get("name"))
		switch {
		case errors.Is(err, ErrUnknownPod):
			answer(w, http.StatusNotFound, Error{Error: err.Error()})
		case err != nil:
			answer(w, http.StatusInternalServerError, Error{Error: err.Error()})
		default:
			answer(w, http.StatusOK, why)
		}
	})
	mux.HandleFunc("GET /v1/costs", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, p.Costs()) })
	mux.HandleFunc("GET /v1/alive", func(w http.ResponseWriter, r *http.Request) {
		if err := alive(r, p); err != nil {
			answer(w, http.StatusServiceUnavailable, Error{Error: err.Error()})
			return
		}
		answer(w, http.StatusOK, struct{}{})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// Not 404: that says that a pod is not known.
		answer(w, http.StatusNotImplemented, Error{Error: fmt.Sprintf("this daemon does not know %s %s", r.Method, r.URL.Path)})
	})
	return mux
}

// statusOf returns the whole status.
func statusOf(p Provider) Status {
	s := p.Status()
	s.Ready, s.NotReady = true, ""
	if err := p.Ready(); err != nil {
		s.Ready, s.NotReady = false, err.Error()
	}
	return s
}

// alive asks the daemon whether it works on.
func alive(r *http.Request, p Provider) error {
	ctx, cancel := context.WithTimeout(r.Context(), aliveTimeout)
	defer cancel()
	return p.Alive(ctx)
}

// answer writes v as JSON. The peer may be gone: that is not an error of this server.
func answer(w http.ResponseWriter, code int, v any) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(v); err != nil {
		http.Error(w, fmt.Sprintf("encode the answer: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes())
}

// newServer returns a server with bounds of time: a connection that sends no whole
// request, or asks nothing more, ends soon.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       requestTimeout,
		MaxHeaderBytes:    16 << 10,
	}
}

// serve answers on l until ctx ends, and then gives nil. It closes l.
func serve(ctx context.Context, l net.Listener, srv *http.Server) error {
	defer func() { _ = srv.Close() }() // where l panics or fails, this ends the connections
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { drained <- drain(srv) })
	defer stop()
	err := srv.Serve(l)
	if stop() {
		return fmt.Errorf("serve at %s: %w", l.Addr(), err)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(<-drained, err)
}

// drain stops a server once it has given the answers under way, or at once where that takes too long.
func drain(srv *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return srv.Close()
	}
	return err
}
