package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
)

// MaxOff is how long a daemon can be switched off at the socket.
const MaxOff = 24 * time.Hour

const (
	// maxConns is the most connections of one server.
	maxConns = 64
	// requestTimeout is the longest time for reading a request, for writing its answer, and until the next one.
	requestTimeout = 10 * time.Second
	// drainTimeout is how long requests under way may last after a server was stopped.
	drainTimeout = time.Second
)

// ServeAdmin serves at the unix socket until ctx ends, and then returns nil. It blocks. If it cannot make the socket, it
// returns the error at once. It replaces an existing socket, so the caller must hold the lock of the run folder. listen
// is rundir.Serve, except where a test takes the place of the socket.
func ServeAdmin(ctx context.Context, listen rundir.Listening, socketPath string, p Provider, s Switch) error {
	return listen(ctx, socketPath, func(ctx context.Context, l net.Listener) error {
		return serve(ctx, netutil.LimitListener(l, maxConns), newServer(adminHandler(p, s)))
	})
}

// ServeWhy is [ServeAdmin] for a socket of every user who can reach its folder, at which a pod can be asked about, by its
// name, and nothing else.
func ServeWhy(ctx context.Context, socketPath string, p Provider) error {
	return rundir.ServeShared(ctx, socketPath, func(ctx context.Context, l net.Listener) error {
		return serve(ctx, netutil.LimitListener(l, maxConns), newServer(whyHandler(p)))
	})
}

func whyHandler(p Provider) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/why/{namespace}/{pod}", few(maxWhys, func(w http.ResponseWriter, r *http.Request) {
		why, err := p.Status().Why(r.PathValue("namespace"), r.PathValue("pod"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		answer(w, why)
	}))
	return mux
}

func adminHandler(p Provider, s Switch) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { answer(w, statusOf(p)) })
	mux.HandleFunc("GET /v1/costs", func(w http.ResponseWriter, _ *http.Request) { answer(w, p.Costs()) })
	mux.HandleFunc("GET /v1/alive", func(w http.ResponseWriter, r *http.Request) { writeHealth(w, alive(r, p)) })
	mux.HandleFunc("POST /v1/off", func(w http.ResponseWriter, r *http.Request) {
		span, err := time.ParseDuration(r.FormValue("for"))
		if err != nil || span < 0 || span > MaxOff {
			http.Error(w, fmt.Sprintf("for=%q: must be from 0s to %s", r.FormValue("for"), MaxOff), http.StatusBadRequest)
			return
		}
		answer(w, s.SwitchOff(span))
	})
	mux.HandleFunc("POST /v1/admit", func(w http.ResponseWriter, r *http.Request) {
		if !s.Admit(r.FormValue("uid")) {
			http.Error(w, "nothing holds the pod now", http.StatusConflict)
			return
		}
		answer(w, true)
	})
	return mux
}

// statusOf returns the status with Ready and NotReady.
func statusOf(p Provider) Status {
	s := p.Status()
	s.Ready, s.NotReady = true, ""
	if err := p.Ready(); err != nil {
		s.Ready, s.NotReady = errors.Is(err, ErrStandby), err.Error()
	}
	return s
}

func alive(r *http.Request, p Provider) error {
	ctx, cancel := context.WithTimeout(r.Context(), aliveTimeout)
	defer cancel()
	return p.Alive(ctx)
}

// answer writes v as JSON. It ignores write errors: they mean that the peer is gone.
func answer(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, fmt.Sprintf("encode the answer: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// newServer returns a server that soon closes a connection which is idle or sends no whole request.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:        h,
		ReadTimeout:    requestTimeout,
		WriteTimeout:   requestTimeout,
		MaxHeaderBytes: 16 << 10,
	}
}

// serve serves on l until ctx ends, and then returns nil. It closes l. Requests under way have drainTimeout to end.
func serve(ctx context.Context, l net.Listener, srv *http.Server) error {
	defer func() { _ = srv.Close() }() // ends the other connections, also if l panics or fails
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		_ = srv.Shutdown(drain)
	})
	defer stop()
	err := srv.Serve(l)
	if stop() {
		return fmt.Errorf("serve at %s: %w", l.Addr(), err)
	}
	<-drained
	return nil
}
