package runtimetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/sirupsen/logrus"
)

// ErrDown is wrapped by the error of every request to a runtime that is not
// running, and of those that were under way when it went down.
var ErrDown = errors.New("runtime is not running")

// Runtime is a container runtime. It is made by New, runs between Start and Stop, and
// is safe for concurrent use.
type Runtime struct {
	opts  Options
	log   logrus.FieldLogger
	tasks sync.WaitGroup // exit monitors, exit notifications, hooks

	lifeMu sync.Mutex // held while starting and going down

	mu sync.Mutex
	// guarded by mu
	session    *session // nil while down
	pods       map[string]*Pod
	containers map[string]*Container
	hooks      map[*hookProcess]struct{}
}

// Socket is the path of the NRI socket. It exists while the runtime runs.
func (r *Runtime) Socket() string { return filepath.Join(r.opts.Dir, "nri.sock") }

// Start brings the runtime up on its socket: an empty one the first time and after
// Stop, one with the pods and containers that were there after Kill.
//
// It waits, until ctx ends, for all runtimes of this process that have another request
// timeout to go down. It is an error if the runtime runs already.
func (r *Runtime) Start(ctx context.Context) error {
	r.lifeMu.Lock()
	defer r.lifeMu.Unlock()
	if r.current() != nil {
		return errors.New("runtime runs already")
	}
	if err := processTimeout.acquire(ctx, r.opts.RequestTimeout); err != nil {
		return err
	}
	s, err := startSession(r)
	if err != nil {
		processTimeout.release()
		return err
	}
	r.mu.Lock()
	r.session = s
	r.mu.Unlock()
	return nil
}

// Kill takes the runtime down as if containerd had been killed: connections and
// socket are gone, requests under way fail with ErrDown, hooks that waited stay behind
// as orphans, containers run on. It returns when all requests have returned. Without
// effect if the runtime is down.
func (r *Runtime) Kill() {
	r.lifeMu.Lock()
	defer r.lifeMu.Unlock()
	r.goDown()
}

// Stop takes the runtime down, kills every process it started, waits until they are
// gone, and forgets all pods. No events are sent. It can be started again.
func (r *Runtime) Stop() error {
	r.lifeMu.Lock()
	defer r.lifeMu.Unlock()
	r.goDown()
	r.mu.Lock()
	containers, hooks := r.containers, r.hooks
	r.mu.Unlock()
	var errs []error
	for _, c := range containers {
		errs = append(errs, c.destroy())
	}
	r.mu.Lock()
	for h := range hooks {
		errs = append(errs, h.destroy())
	}
	r.mu.Unlock()
	r.tasks.Wait()
	r.forget()
	errs = append(errs, os.RemoveAll(r.bundles()))
	return errors.Join(errs...)
}

// goDown ends the current session; lifeMu is held.
func (r *Runtime) goDown() {
	r.mu.Lock()
	s := r.session
	r.session = nil
	r.mu.Unlock()
	if s != nil {
		s.close()
		processTimeout.release()
	}
}

func (r *Runtime) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods = make(map[string]*Pod)
	r.containers = make(map[string]*Container)
	r.hooks = make(map[*hookProcess]struct{})
}

func (r *Runtime) bundles() string { return filepath.Join(r.opts.Dir, "bundles") }

// current returns the session, nil while the runtime is down.
func (r *Runtime) current() *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session
}

// Hooks is the number of hook processes that are alive, waiting or orphaned.
func (r *Runtime) Hooks() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.hooks)
}

// Pods returns the sandboxes in the store, in no order.
func (r *Runtime) Pods() []*Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	pods := make([]*Pod, 0, len(r.pods))
	for _, p := range r.pods {
		pods = append(pods, p)
	}
	return pods
}
