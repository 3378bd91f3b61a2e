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
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nodecondition"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/settings"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/signals"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/startuptaint"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/turns"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Daemon paces the pods of one node. Create it with New.
type Daemon struct {
	options    Options
	since      time.Time
	cores      int
	file       crd.Documents
	observer   *observe.Observer
	signals    *signals.Monitor
	starts     *starts.Starts
	waiting    *waiting.Chooser
	memory     *learning.Memory
	handler    handler
	connection *nri.Connection
	cni        *cni.Installer  // nil: no waiting room is installed
	cluster    *cluster        // nil when standalone
	claimer    *leases.Claimer // the same

	limited sync.Once
	limits  chan struct{} // closed once a configuration is in force
	pacing  atomic.Bool
	standby atomic.Pointer[error] // why another daemon paces this node's pods; nil: none does
}

// tuning is what tests change in a daemon, beside its options.
type tuning struct {
	timing                                 starts.Timing
	hold, savedHold, firstPause, firstTrip time.Duration // 0: the default
	// These take the place of the cluster's parts when there is no cluster; nil: nothing does.
	pods   starts.PodWatch
	stops  nri.StopSource
	events observe.EventWriter
	leases kube.Leases
}

// defaultTuning returns the tuning of a daemon outside of tests.
func defaultTuning() tuning {
	return tuning{timing: starts.DefaultTiming(), events: observe.NoEvents{}}
}

// New returns a daemon. It reads the configuration file and the credentials for the API server, and starts nothing. The
// error wraps that of [Options.Validate], or crd.ErrInvalid if the content of ConfigFile is invalid. After any other
// error, a later call may succeed.
func New(o Options) (*Daemon, error) { return newWith(o, defaultTuning()) }

func newWith(o Options, t tuning) (*Daemon, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("invalid options: %w", err)
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
	var c *clients
	if !o.Standalone() {
		if c, err = newClients(o); err != nil {
			return nil, err
		}
	}
	return newDaemon(o, cores, file, c, t), nil
}

// newDaemon returns a daemon that uses the API server through c; nil: it is standalone.
func newDaemon(o Options, cores int, file crd.Documents, c *clients, t tuning) *Daemon {
	d := new(Daemon) // complete at the end; only Run calls the functions that use it
	policiesChanged, nodes := func(policies.Changes) {}, func() int { return 0 }
	var cl *cluster
	var observer *observe.Observer
	if c == nil {
		observer = observe.New(observe.Options{Log: o.Log, Events: t.events, Nodes: nodes})
	} else {
		node := nodecondition.New(func(begins bool) { d.starts.Valve.SetShutdown(begins) }, func(begins bool) { d.starts.Valve.SetPressure(begins) })
		cl, observer = newCluster(o, *c, file, d, node.Observe)
		nodes, policiesChanged = cl.reporter.Nodes, cl.policiesChanged
		t.pods, t.stops, t.leases = cl.watch, cl.watch, c.kube.Leases(o.Namespace)
	}
	if o.CNI && t.timing.RoomReturns == 0 {
		t.timing.RoomReturns = roomReturns
	}
	board, memory := turns.NewBoard(), learning.New(o.costsPath(), machineOf(o, cores), o.Log)
	paced := starts.New(starts.Options{
		Pods: t.pods, Server: t.leases != nil, Observer: observer, Memory: memory, Board: board, Log: o.Log,
		Waitable: o.GateTimeout, Forgotten: func(uid string) { d.waiting.Forget(uid) }, PoliciesChanged: policiesChanged, Roots: usage.Roots{Proc: o.ProcRoot, Cgroup: o.CgroupRoot}, Timing: t.timing,
		Round: func(now time.Time, waiting []throttle.TicketView) (map[string]bool, time.Time) {
			d.signals.Wake()
			if d.claimer != nil {
				d.claimer.Wake()
			}
			return d.waiting.Room.Round(now, waiting)
		},
	})
	var claimer *leases.Claimer
	if t.leases != nil {
		claimer = newClaimer(o, t.leases, paced.Limiter(), nodes, observer)
	}
	chooser := waiting.New(waiting.Options{
		Starts: paced, BreakerPause: t.firstTrip, Pods: t.pods, Observer: observer, Board: board,
		Gate:     waiting.GateOptions{Use: o.Gate, Path: o.GatePath, Programs: o.Programs, Socket: o.SocketPath(), Timeout: o.GateTimeout},
		RefuseAt: o.RefuseAt, Hold: cmp.Or(t.hold, o.Hold), SavedHold: t.savedHold, Cores: cores, ProcRoot: o.ProcRoot, NRISocket: o.NRISocket,
	})
	calls, limits := handler{starts: paced, waiting: chooser, observer: observer}, make(chan struct{})
	connection := nri.New(nri.Options{
		PreRegistered: o.PreRegistered, Socket: o.NRISocket, Name: o.pluginName(), Index: o.NRIIndex,
		Handler: calls, Limits: limits, Stops: t.stops, Log: o.Log, FirstPause: t.firstPause,
	})
	var room *cni.Installer
	if o.CNI {
		room = newCNI(o, connection.Synced(), chooser.Room.Shut)
	}
	*d = Daemon{
		options: o, since: time.Now(), cores: cores, file: file, observer: observer, claimer: claimer,
		signals: signals.New(o.ProcRoot, paced.Limiter(), observer.Report),
		starts:  paced, waiting: chooser, memory: memory, handler: calls, connection: connection, cni: room, cluster: cl,
		limits: limits,
	}
	return d
}

var errNoConfiguration = errors.New("the API server has not sent the configuration yet: pods start unpaced")

// configure puts a configuration in force.
func (d *Daemon) configure(e crd.Effective) {
	defer d.observer.Caught("configure")
	s := settings.Of(e.Spec, d.cores)
	d.signals.Prepare(s, settings.PressureWindow(e.Spec.ThrottleConfig))
	d.starts.Configure(time.Now(), e, s)
	d.signals.Wake()
	d.observer.Report(observe.Configured{
		Name: e.Name, Origin: string(e.Origin), Generation: e.Generation, Mode: e.Spec.GetMode(), Limits: s,
	})
	if d.cluster == nil || e.Origin != crd.OriginNone {
		d.limited.Do(func() { close(d.limits) })
	}
}

// podChanged passes a change of a pod on. A pod that makes that panic ends nothing.
func (d *Daemon) podChanged(pod podwatch.Pod, deleted bool) {
	defer d.observer.CaughtPod("podChanged", pod.UID, pod.Namespace+"/"+pod.Name)
	d.starts.PodChanged(pod, deleted)
}

// setPolicies puts policies in force.
func (d *Daemon) setPolicies(inForce []*v1alpha1.StartPolicy) {
	defer d.observer.Caught("setPolicies")
	d.starts.Policies.Set(time.Now(), inForce)
}

// Run paces pods until ctx ends, and then returns nil. It blocks. Call it once. While another daemon uses the same run
// folder, this one stands by, and takes over when the other ends. If the daemon's DaemonSet was removed or does not
// select the node, Run removes the daemon's files from the host before it returns; if only the waiting room was
// switched off, the files of that. It returns an error if this fails. It returns an error early if the run folder
// cannot be locked, if one of the daemon's sockets cannot be served, or if the runtime that started the daemon closes
// its connection.
func (d *Daemon) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if d.cluster != nil {
		defer d.cluster.recorder.Start()()
		d.cluster.source.Begin() // before containerd calls
		g.Go(func() error { return d.cluster.run(ctx, d.starts.Policies) })
	} else {
		d.setPolicies(d.file.Policies)
		d.configure(crd.FromFile(d.file.Config))
	}
	g.Go(func() error { return d.lead(ctx) })
	var parts []part
	if d.options.HTTPAddress != "" {
		parts = append(parts, part{"http", d.serveHTTP})
	}
	if d.cluster != nil && d.options.StartupTaint != "" {
		parts = append(parts, part{"removeStartupTaint", forever(startuptaint.Remover{
			Client: d.cluster.kube, Node: d.options.NodeName, Key: d.options.StartupTaint,
			NodeUID: d.cluster.source.NodeUID, Ready: d.Ready, Log: d.options.Log,
		}.Run)})
	}
	g.Go(func() error { return d.runParts(ctx, parts...) })
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return d.uninstall(context.WithoutCancel(ctx))
}

// part is a part of the daemon that runs until ctx ends, or returns an error that ends the daemon.
type part struct {
	name string // in logs and metrics, should it panic
	run  func(ctx context.Context) error
}

// forever adapts a function that returns only when ctx ends.
func forever(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); return nil }
}

// runParts runs the parts until all have returned, and starts each again after a panic. An error of one ends the others.
func (d *Daemon) runParts(ctx context.Context, parts ...part) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range parts {
		g.Go(func() error { return d.observer.Supervised(ctx, p.name, p.run) })
	}
	return g.Wait()
}

// pace serves the runtime, the hooks and the administrator until ctx ends.
func (d *Daemon) pace(ctx context.Context) error {
	d.pacing.Store(true)
	defer d.pacing.Store(false)
	d.memory.Load() // another daemon may have written it until now
	installHook(d.waiting.Gate, d.options)
	parts := []part{
		{"run", d.starts.Run}, {"connection", d.connection.Run}, {"sensors", d.signals.Run}, {"memory", d.memory.Run},
		{"answerHooks", d.answerHooks},
		{"admin", func(ctx context.Context) error { return admin.ServeAdmin(ctx, d.options.AdminPath(), d) }},
	}
	if d.claimer != nil {
		parts = append(parts, part{"claims", forever(d.claimer.Run)})
	}
	if d.cni != nil {
		parts = append(parts, part{"installRoom", d.cni.Run})
	}
	return d.runParts(ctx, parts...)
}

// answered returns a channel that is closed once it is known whether the API server has a configuration for this node,
// and which; nil when standalone.
func (d *Daemon) answered() <-chan struct{} {
	if d.cluster == nil {
		return nil
	}
	return d.cluster.source.Ready()
}
