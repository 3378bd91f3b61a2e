package runtimetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
)

// maxSocketPath is the longest address of a unix socket.
const maxSocketPath = 107

// registrationTimeout is how long a plugin may take from its connection to its registration. After NRI's default of 5 s,
// NRI closes the connection without a lock, and the race detector fails every test that runs if the plugin registers just
// then, on a machine that stood still for a moment.
const registrationTimeout = time.Hour

// tick is the pause between two looks at a state without a signal for its changes.
const tick = time.Millisecond

// runtimeName is what plugins are told.
const runtimeName = "containerd"

// ErrDown is wrapped by the error of every request to a runtime that is not running. It is also in the errors of
// requests that were under way when the runtime went down.
var ErrDown = errors.New("runtime is not running")

// Options are the options of a Runtime. Only Dir is required.
type Options struct {
	// Dir is an existing directory, used by this Runtime alone, for its sockets. Its path must be short enough for
	// a socket's address.
	Dir string
	// Version is what plugins are told of this containerd; v2.4.2 by default.
	Version string
	// RequestTimeout is how long a plugin may take to answer; 0 means NRI's default of 2 s. NRI has one timeout for
	// the process: the timeout of the runtime that started last counts for all.
	RequestTimeout time.Duration
	// RejectHooks makes every container fail to which a plugin adds a hook, like containerd's
	// default_validator.reject_oci_hook_adjustment.
	RejectHooks bool
	// InMemory makes a runtime without sockets, processes and random IDs, for a bubble of testing/synctest: plugins connect
	// with DialPlugin, containers run ContainerSpec.Run, and RejectHooks is left out.
	InMemory bool
	// Hook plays a hook with these arguments, without the program, and returns its exit code and its output. Its context
	// ends with the runc that ran it. It is required with InMemory.
	Hook func(runc context.Context, args []string) (code int, output string)
	// Network plays the CNI plugins that make the network of a sandbox with this ID, before any event of it. Its context ends
	// with the request. Nil makes none.
	Network func(ctx context.Context, pod PodSpec, sandbox string) error
	// Rejects plays another plugin, which is asked after the one that is connected: it returns why it rejects a container, or
	// nil. It must not block. It is used only with InMemory; nil is none.
	Rejects func(pod *api.PodSandbox, container *api.Container) error
	// Bundles is a folder in which each sandbox and each container that runs, or whose hooks run, has the folder of its OCI
	// bundle, as far as it tells whose it is and how large it is. Empty is none.
	Bundles string
	// Ended gets why the runtime ended by itself, as containerd does for a list that NRI cannot split. The runtime is down
	// then, as by Kill. It is used only with InMemory, and required there if a plugin may register beside pods of more
	// than 4 MiB.
	Ended func(why any)
	// Log gets containerd's messages; nil discards them. NRI writes its own to the standard logger
	// of logrus: this package silences all but warnings there.
	Log logrus.FieldLogger
}

// Runtime is a container runtime. New makes it. It runs between Start and Stop, and is safe for concurrent use.
type Runtime struct {
	opts  Options
	log   logrus.FieldLogger
	tasks sync.WaitGroup // followers of processes, exit notifications

	lifeMu sync.Mutex // held while starting and going down

	mu sync.Mutex
	// guarded by mu
	session    *session // nil while down
	pods       map[string]*Pod
	containers map[string]*Container
	hooks      map[task]struct{}
	numbers    int            // given to what has no other name in memory
	ids        map[string]int // in memory, given to what belongs to a pod, by its UID
	steps      []clockStep
}

// clockStep is by how much the wall clock is set from a time on, in all.
type clockStep struct {
	at time.Time
	by time.Duration
}

// SetClock sets the node's wall clock by so much. What the runtime and a [Kubelet] say of times from now on is by that; in a
// bubble of testing/synctest, no other clock can be set.
func (r *Runtime) SetClock(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.steps); n > 0 {
		by += r.steps[n-1].by
	}
	r.steps = append(r.steps, clockStep{time.Now(), by})
}

// wall returns what the node's wall clock said at a time.
func (r *Runtime) wall(t time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range slices.Backward(r.steps) {
		if !t.Before(s.at) {
			return t.Add(s.by)
		}
	}
	return t
}

// New makes a Runtime. It starts nothing.
func New(o Options) (*Runtime, error) {
	if o.Dir == "" {
		return nil, errors.New("runtimetest: Options.Dir is empty")
	}
	o.Version = cmp.Or(o.Version, "v2.4.2")
	o.RequestTimeout = cmp.Or(o.RequestTimeout, adaptation.DefaultPluginRequestTimeout)
	if o.Log == nil {
		quiet := logrus.New()
		quiet.SetOutput(io.Discard)
		o.Log = quiet
	}
	logrus.SetLevel(logrus.WarnLevel) // of what NRI writes
	r := &Runtime{opts: o, log: o.Log, ids: map[string]int{}}
	if p := r.innerSocket(); len(p) > maxSocketPath {
		return nil, fmt.Errorf("runtimetest: socket path %q has %d bytes, a unix socket's address holds %d", p, len(p), maxSocketPath)
	}
	r.forget()
	return r, nil
}

// Socket is the path of the NRI socket. It exists while the runtime runs.
func (r *Runtime) Socket() string { return filepath.Join(r.opts.Dir, "nri.sock") }

// innerSocket is the adaptation's own socket. The connections of Socket are passed on to it.
func (r *Runtime) innerSocket() string { return filepath.Join(r.opts.Dir, "inner.sock") }

// Start brings the runtime up on its socket. The first time and after Stop it is empty. After Kill it has the earlier
// pods and containers. It is an error if the runtime runs already.
func (r *Runtime) Start() error {
	r.lifeMu.Lock()
	defer r.lifeMu.Unlock()
	if r.current() != nil {
		return errors.New("runtime runs already")
	}
	if !r.opts.InMemory { // NRI has these once for the process
		adaptation.SetPluginRegistrationTimeout(registrationTimeout)
		adaptation.SetPluginRequestTimeout(r.opts.RequestTimeout)
	}
	s, err := startSession(r)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.session = s
	r.mu.Unlock()
	return nil
}

// Kill takes the runtime down as if containerd had been killed. The connections and the socket are gone, and requests
// under way fail with ErrDown. Waiting hooks stay behind as orphans, and containers still run. It returns when all
// requests have returned. It has no effect if the runtime is down.
func (r *Runtime) Kill() {
	r.lifeMu.Lock()
	defer r.lifeMu.Unlock()
	r.goDown()
}

// endsItself takes the runtime down for a fault of its own.
func (r *Runtime) endsItself(why any) {
	go func() { // the caller holds its locks
		r.Kill()
		r.opts.Ended(why)
	}()
}

// Listed returns how many bytes of pods and containers the runtime lists to a plugin that registers.
func (r *Runtime) Listed() (n int) {
	pods, containers := r.list()
	for _, p := range pods {
		n += p.SizeVT()
	}
	for _, c := range containers {
		n += c.SizeVT()
	}
	return n
}

// Stop takes the runtime down, kills every process that it started, waits for their ends, and forgets all pods. It
// sends no events. The runtime can be started again.
func (r *Runtime) Stop() error {
	r.lifeMu.Lock()
	defer r.lifeMu.Unlock()
	r.goDown()
	r.mu.Lock()
	var errs []error
	for _, c := range r.containers {
		errs = append(errs, c.destroy())
	}
	for h := range r.hooks {
		errs = append(errs, h.kill())
	}
	r.mu.Unlock()
	r.tasks.Wait()
	r.forget()
	return errors.Join(errs...)
}

// goDown ends the current session. lifeMu must be held.
func (r *Runtime) goDown() {
	r.mu.Lock()
	s := r.session
	r.session = nil
	r.mu.Unlock()
	if s != nil {
		s.close()
	}
}

func (r *Runtime) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods = make(map[string]*Pod)
	r.containers = make(map[string]*Container)
	r.hooks = make(map[task]struct{})
}

// current returns the session, nil while the runtime is down.
func (r *Runtime) current() *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session
}

// begin opens a request: it returns the current session and a context that ends with
// ctx or with the session. The caller must call end.
func (r *Runtime) begin(ctx context.Context) (s *session, callCtx context.Context, end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s = r.session
	if s == nil {
		return nil, nil, nil, ErrDown
	}
	s.calls.Add(1)
	callCtx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(ErrDown) })
	return s, callCtx, func() {
		stop()
		cancel(nil)
		s.calls.Done()
	}, nil
}

// request makes a request about a sandbox or container. It does nothing unless stored returns true.
func (r *Runtime) request(ctx context.Context, stored func() bool, do func(context.Context, *session) error) error {
	s, ctx, end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if !stored() {
		return nil
	}
	defer s.relay.nri.keepFromSync()()
	return do(ctx, s)
}

// downCause adds ErrDown to the error of a request that the runtime's end interrupted.
func downCause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrDown) && !errors.Is(err, ErrDown) {
		return fmt.Errorf("%w: %w", ErrDown, err)
	}
	return err
}

// DialPlugin connects a plugin in memory. While nothing listens, the error wraps syscall.ECONNREFUSED.
func (r *Runtime) DialPlugin(ctx context.Context) (net.Conn, error) {
	s := r.current()
	if s == nil {
		return nil, fmt.Errorf("%w: %w", ErrDown, syscall.ECONNREFUSED)
	}
	return s.memory.Dial(ctx)
}

// number returns a new number.
func (r *Runtime) number() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.numbers++
	return r.numbers
}

// newID makes an identifier like containerd's: 64 hex digits. In memory, it depends only on what the pod of this UID
// got before.
func (r *Runtime) newID(pod string) string {
	if r.opts.InMemory {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ids[pod]++
		return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s/%d", pod, r.ids[pod])))
	}
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}

// Hooks is the number of live hook processes, waiting or orphaned.
func (r *Runtime) Hooks() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.hooks)
}

// Pods returns the sandboxes in the store, oldest first.
func (r *Runtime) Pods() []*Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.pods), func(a, b *Pod) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
}
