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
		ctx, cancel := context.WithTimeout(r.Context(), aliveTimeout)
		defer cancel()
		if err := p.Alive(ctx); err != nil {
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

// serve answers on l until ctx ends, and then gives nil. It closes l. A panic of l
// becomes one of the caller, who can catch it.
func serve(ctx context.Context, l net.Listener, srv *http.Server) error {
	ended := make(chan served, 1)
	go func() { ended <- accept(srv, l) }()
	select {
	case s := <-ended:
		if s.panicked != nil {
			_ = srv.Close() // its listener is closed already: this ends the connections
			panic(s.panicked)
		}
		return fmt.Errorf("serve at %s: %w", l.Addr(), s.err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := srv.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	if s := <-ended; s.panicked == nil && !errors.Is(s.err, http.ErrServerClosed) {
		err = errors.Join(err, s.err)
	}
	return err
}

// served is how a server ended.
type served struct {
	err      error
	panicked any // nil: it did not
}

func accept(srv *http.Server, l net.Listener) (s served) {
	defer func() { s.panicked = recover() }()
	return served{err: srv.Serve(l)}
}
