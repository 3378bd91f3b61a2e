package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/turns"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/socket"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Daemon paces the pods of one node. Make it with New.
type Daemon struct {
	options    Options
	since      time.Time
	cores      int
	file       crd.Documents
	limiter    *throttle.Limiter
	matcher    *policies.Matcher
	observer   *observe.Observer
	sensors    *sensors
	starts     *starts.Starts
	waiting    *waiting.Chooser
	memory     *learning.Memory
	handler    handler
	connection *nri.Connection
	cni        *cni.Installer // nil: no waiting room is installed
	cluster    *cluster       // nil when standalone

	timeline admin.Timeline
	lookedAt atomic.Int64 // when the timeline was last asked for, in nanoseconds
	limited  sync.Once
	limits   chan struct{} // closed once a configuration is in force
	pacing   atomic.Bool
	standby  atomic.Pointer[error] // why another daemon paces this node's pods; nil: none does
}

// rooms are what a daemon's parts are made of, beside its options. Tests change them.
type rooms struct {
	timing                                 starts.Timing
	hold, savedHold, firstPause, firstOpen time.Duration // 0: as they are
	// Without a cluster, these take the place of its parts; nil: nothing does.
	pods   starts.Source
	stops  nri.StopSource
	events observe.Events
	// matcher changes what the matcher of policies works with, round what is called in each round.
	matcher func(*policies.Options)
	round   func()
}

// theRooms are those of a daemon.
func theRooms() rooms {
	return rooms{timing: starts.DefaultTiming(), events: observe.NoEvents{}, round: func() {}}
}

// New returns a daemon. It reads the configuration file and the access to the API
// server, and starts nothing. An error wraps ErrOptions or, for the content of
// ConfigFile, crd.ErrInvalid; any other may go away by itself.
func New(o Options) (*Daemon, error) { return newWith(o, theRooms()) }

func newWith(o Options, r rooms) (*Daemon, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	cores, err := nodeCores(o)
	if err != nil {
		return nil, err
	}
	var file crd.Documents
	if o.ConfigFile != "" {
		if file, err = crd.Load(o.ConfigFile); err != nil {
			return nil, err
		}
	}
	if o.Standalone() {
		return newDaemon(o, cores, file, nil, r), nil
	}
	c, err := reachCluster(o)
	if err != nil {
		return nil, err
	}
	return newDaemon(o, cores, file, &c, r), nil
}

// newDaemon returns a daemon of the cluster that c reaches; nil: of none.
func newDaemon(o Options, cores int, file crd.Documents, c *clients, r rooms) *Daemon {
	d := &Daemon{
		options: o, since: time.Now(), cores: cores, file: file, limits: make(chan struct{}),
		limiter: throttle.New(time.Now(), throttle.Settings{}),
	}
	nodes := func() int { return 0 }
	keeping := policies.Options{Limiter: d.limiter, Log: o.Log}
	if c != nil {
		d.cluster = newCluster(d, *c)
		nodes, r.events, r.pods, r.stops = d.cluster.summary.Nodes, d.cluster.recorder, d.cluster.watch, d.cluster.watch
	}
	d.observer = observe.New(observe.Options{Log: o.Log, Events: r.events, Nodes: nodes})
	d.sensors = newSensors(o, d.limiter, d.observer.Node)
	if c != nil {
		r.round = d.cluster.claim(d.limiter, d.observer, o, &keeping)
	}
	if r.matcher != nil {
		r.matcher(&keeping)
	}
	d.matcher = policies.New(keeping)
	if o.CNI && r.timing.Settle == 0 {
		r.timing.Settle = roomSettles
	}
	d.memory = learning.New(o.costsPath(), machineOf(o, cores), o.Log)
	board, breaker := turns.NewBoard(), waiting.NewBreaker(r.firstOpen)
	d.starts = starts.New(starts.Options{
		Limiter: d.limiter, Pods: r.pods, Policies: d.matcher, Observer: d.observer, Memory: d.memory, Board: board, Log: o.Log,
		Waitable: o.GateTimeout, Forgotten: breaker.Forget, Roots: usage.Roots{Proc: o.ProcRoot, Cgroup: o.CgroupRoot}, Timing: r.timing,
		Round: func(now time.Time, held throttle.Snapshot) time.Time {
			d.sensors.sampler.Wake()
			r.round()
			return d.waiting.Room.Round(now, held)
		},
	})
	d.waiting = waiting.New(waiting.Options{
		Starts: d.starts, Breaker: breaker, Pods: r.pods, Observer: d.observer, Board: board, Log: o.Log,
		Gate:     waiting.GateOptions{Mode: o.Gate, Path: o.GatePath, Socket: o.SocketPath(), Timeout: o.GateTimeout},
		RefuseAt: o.RefuseAt, Hold: cmp.Or(r.hold, o.Hold), SavedHold: r.savedHold, Cores: cores, ProcRoot: o.ProcRoot,
	})
	d.cni = newCNI(d.options, d.waiting.Room.Shut)
	d.handler = handler{starts: d.starts, waiting: d.waiting, observer: d.observer}
	d.connection = nri.New(nri.Options{
		PreRegistered: o.PreRegistered, Socket: o.NRISocket, Name: o.pluginName(), Index: o.NRIIndex,
		Handler: d.handler, Limits: d.limits, Stops: r.stops, Log: o.Log, FirstPause: r.firstPause,
	})
	if c != nil {
		d.cluster.follow(d)
	}
	d.observer.Collect(observe.Sources{
		Limiter: d.limiter, Signals: d.sensors.now, Policies: d.policyStates, Claims: d.cluster.claims, Connected: d.connection.Paces,
		RegistrationWaits: d.connection.RegistrationWaits, GateWaiters: d.waiting.Gate.Waiters,
		Room: d.roomStatus, LogDropped: o.LogDropped, Version: o.Version,
	})
	return d
}

// ErrOptions is wrapped by what New says of options that are not valid.
var ErrOptions = errors.New("invalid options")

var errNoConfiguration = errors.New("the API server has not told the configuration yet: pods start unpaced")

// configure puts a configuration in force.
func (d *Daemon) configure(e crd.Effective) {
	defer d.observer.Caught("configure")
	d.observer.Configured(e.Name, string(e.Origin), e.Generation)
	s := SettingsOf(e.Spec, d.cores)
	d.sensors.prepare(s, pressureWindow(e.Spec.ThrottleConfig))
	d.starts.Configure(time.Now(), e, s)
	d.sensors.sampler.Wake()
	d.options.Log.WithFields(map[string]any{
		"config": e.Name, "origin": e.Origin, "generation": e.Generation,
		"mode": e.Spec.GetMode(), "limits": admin.LimitsText(s),
	}).Info("configuration in force")
	if d.cluster == nil || e.Origin != crd.OriginNone {
		d.limited.Do(func() { close(d.limits) })
	}
}

// setPolicies puts policies in force.
func (d *Daemon) setPolicies(inForce []*v1alpha1.StartPolicy) {
	defer d.observer.Caught("setPolicies")
	d.matcher.SetPolicies(time.Now(), inForce)
	d.starts.Wake() // an override may begin
}

// Run paces pods until ctx ends, and returns nil then; if the DaemonSet that runs it
// was removed, it takes its files off the host first. While another daemon uses the
// same run folder it stands by, and takes over when that one ends. It returns
// early only when one of its own sockets cannot be served.
func (d *Daemon) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if d.cluster != nil {
		defer d.cluster.recorder.Start()()
		g.Go(func() error { return d.cluster.run(ctx, d.matcher) })
	} else {
		d.setPolicies(d.file.Policies)
		d.configure(crd.FromFile(d.file.Config))
	}
	g.Go(func() error { return d.lead(ctx) })
	if d.options.HTTPAddress != "" {
		g.Go(func() error { return d.observer.Supervised(ctx, "http", d.serveHTTP) })
		g.Go(func() error { return d.observer.Supervised(ctx, "timeline", d.recordTimeline) })
	}
	if d.cluster != nil && d.options.StartupTaint != "" {
		g.Go(func() error {
			return d.observer.Supervised(ctx, "removeStartupTaint", startupTaint{
				client: d.cluster.kube, node: d.options.NodeName, key: d.options.StartupTaint, log: d.options.Log,
			}.removeWhen(d.Ready))
		})
	}
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return d.leave(context.WithoutCancel(ctx))
}

// pace serves the runtime and the hooks until ctx ends.
func (d *Daemon) pace(ctx context.Context) error {
	d.pacing.Store(true)
	defer d.pacing.Store(false)
	d.memory.Load() // which another daemon may have written until now
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.observer.Supervised(ctx, "run", d.starts.Run) })
	g.Go(func() error { return d.observer.Supervised(ctx, "connection", d.connection.Run) })
	g.Go(func() error { return d.observer.Supervised(ctx, "sensors", d.sensors.sampler.Run) })
	g.Go(func() error { return d.observer.Supervised(ctx, "memory", d.memory.Run) })
	if d.cluster != nil {
		g.Go(func() error {
			return d.observer.Supervised(ctx, "claims", func(ctx context.Context) error { d.cluster.claimer.Run(ctx); return nil })
		})
	}
	g.Go(func() error { return d.observer.Supervised(ctx, "answerHooks", d.answerHooks) })
	if d.cni != nil {
		g.Go(func() error { return d.observer.Supervised(ctx, "installRoom", d.cni.Run) })
	}
	return g.Wait()
}

// answerHooks answers the hooks, once the limits and the starts under way are known:
// before, every hook that waits since an earlier daemon would be let go at once.
// Until then they keep to the pace that they were told last.
func (d *Daemon) answerHooks(ctx context.Context) error {
	select {
	case <-d.limits:
	case <-d.answered():
	case <-ctx.Done():
		return nil
	}
	if d.cluster != nil && !d.cluster.awaitPolicies(ctx, d.options.Log) {
		return nil
	}
	select {
	case <-d.connection.Synced():
	case <-ctx.Done():
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	if d.starts.Hooks.Freeze() { // before any hook is back
		g.Go(func() error { return d.observer.Supervised(ctx, "thaw", d.starts.Hooks.Thaw) })
	}
	g.Go(func() error { return d.observer.Supervised(ctx, "gate", d.serveGate) })
	return g.Wait()
}

// serveGate answers the hooks until ctx ends.
func (d *Daemon) serveGate(ctx context.Context) error {
	listener, err := socket.Listen(d.options.SocketPath())
	if err != nil {
		return err
	}
	backend := waiting.Backend{Gate: d.waiting.Gate, Room: d.waiting.Room}
	return gate.NewServer(backend, func() { d.observer.CountPanic("gate") }, d.options.Log).Serve(ctx, listener)
}

// answered returns a channel that is closed once it is known which configuration the
// API server has for this node, maybe none; nil when standalone.
func (d *Daemon) answered() <-chan struct{} {
	if d.cluster == nil {
		return nil
	}
	return d.cluster.source.Told()
}
