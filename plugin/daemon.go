package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nodecondition"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/report"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/socket"
)

// Daemon paces the pods of one node. Make it with New.
type Daemon struct {
	options    Options
	since      time.Time
	cores      int
	metrics    *metrics
	pacer      *pacer
	connection *connection
	fallback   *v1alpha1.PacemakerConfig
	// filePolicies are those of the configuration file.
	filePolicies []*v1alpha1.StartPolicy
	timeline     admin.Timeline
	lookedAt     atomic.Int64 // when somebody last asked for the timeline, in nanoseconds
	limited      sync.Once
	limits       chan struct{} // closed once a configuration is in force
	pacing       atomic.Bool
	standby      atomic.Pointer[error] // why another daemon paces this node's pods; nil: none does

	// nil when standalone
	client  kube.Interface
	dynamic dynamic.Interface
	watch   *podwatch.Watch
	source  *crd.Source
	// election tells how large the cluster is, too.
	election *report.Election
	claimer  *leases.Claimer
	// policies and namespaces feed the pacer's keeper.
	policies   *crd.Policies
	namespaces *policies.Namespaces
}

// New gives a daemon. It reads the configuration file and the access to the API
// server, and starts nothing. An error wraps ErrOptions or, for the content of
// ConfigFile, crd.ErrInvalid; any other may go away by itself.
func New(o Options) (*Daemon, error) {
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
	d := newDaemon(o, cores, file.Config, nil)
	d.filePolicies = file.Policies
	if !o.Standalone() {
		c, err := reachCluster(o)
		if err != nil {
			return nil, err
		}
		d.follow(c)
	}
	return d, nil
}

// newDaemon gives a daemon that asks pods about pods; nil: nobody can be asked.
func newDaemon(o Options, cores int, fallback *v1alpha1.PacemakerConfig, pods podSource) *Daemon {
	d := &Daemon{
		options: o, since: time.Now(), cores: cores, metrics: newMetrics(),
		fallback: fallback, limits: make(chan struct{}),
	}
	d.pacer = newPacer(o, pods, d.metrics)
	d.metrics.registry.MustRegister(newSignalMetrics(d.pacer.sensors))
	d.pacer.refusals.cores = cores
	d.connection = newConnection(o, d.pacer)
	d.connection.limits = d.limits
	d.metrics.registry.MustRegister(newStateMetrics(d.pacer.limiter),
		newPolicyMetrics(d.policyStates, d.pacer.limiter), newClaimMetrics(d.claims), newConnected(d.connection.paces), newRegistrationWaits(d.connection.stops.underWay), newBuildInfo(o.Version), newLogDropped(o.LogDropped))
	return d
}

// follow makes the daemon follow pods and configurations in the API server.
func (d *Daemon) follow(c clients) {
	o := d.options
	d.client, d.dynamic = c.kube, c.dynamic
	d.watch = podwatch.New(c.kube, o.NodeName, o.Log)
	d.watch.OnPanic(func() { d.pacer.countPanic("podwatch") })
	d.watch.OnChange(func(pod podwatch.Pod, deleted bool) {
		defer d.pacer.caught("podChanged")
		d.pacer.podChanged(pod, deleted)
	})
	d.pacer.pods, d.connection.stops.source = d.watch, d.watch
	d.source = crd.NewSource(c.dynamic, c.kube, o.NodeName, o.Instance, d.fallback, o.Log, d.configure)
	d.election = report.NewElection(report.ElectionOptions{
		API: c.kube, Namespace: o.Namespace, NodeName: o.NodeName, Instance: o.Instance, Log: o.Log,
	})
	d.pacer.nodes = d.election.Nodes
	d.source.OnPanic(func(part string) { d.pacer.countPanic("crd " + part) })
	d.source.OnNode(nodecondition.New(d.pacer.shutsDown, d.pacer.pressed).Observe)
	if o.StateDir != "" {
		d.source.Remember(o.lastGoodPath())
	}
	d.followPolicies(c)
}

// ErrOptions is wrapped by what New says of options that are not valid.
var ErrOptions = errors.New("invalid options")

var errNoConfiguration = errors.New("the API server has not told the configuration yet: pods start unpaced")

func (d *Daemon) configure(e crd.Effective) {
	defer d.pacer.caught("configure")
	d.metrics.generation.Reset()
	d.metrics.generation.WithLabelValues(e.Name, string(e.Origin)).Set(float64(e.Generation))
	d.pacer.configure(time.Now(), e, d.cores)
	if d.source == nil || e.Origin != crd.OriginNone {
		d.limited.Do(func() { close(d.limits) })
	}
}

// Run paces pods until ctx ends, and gives nil then; if the DaemonSet that runs it
// was removed, it takes its files off the host first. While another daemon uses the
// same run folder it stands by, and takes over when that one ends. It returns
// early only when one of its own sockets cannot be served.
func (d *Daemon) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if d.client != nil {
		n := newPodNotices(d.client, d.options.NodeName, d.options.Instance)
		defer n.stop()
		d.pacer.notices = n
		g.Go(func() error { return d.watch.Run(ctx) })
		g.Go(func() error { return d.source.Run(ctx) })
		g.Go(func() error { return d.policies.Run(ctx) })
		g.Go(func() error { return d.namespaces.Run(ctx, d.pacer.keeper) })
	} else {
		d.setPolicies(d.filePolicies)
		d.configure(crd.FromFile(d.fallback))
	}
	g.Go(func() error { return d.lead(ctx) })
	if d.options.HTTPAddress != "" {
		g.Go(func() error { return d.pacer.supervised(ctx, "http", d.serveHTTP) })
		g.Go(func() error { return d.pacer.supervised(ctx, "timeline", d.recordTimeline) })
	}
	if d.client != nil && d.options.StartupTaint != "" {
		g.Go(func() error { return d.pacer.supervised(ctx, "removeStartupTaint", d.removeStartupTaint) })
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
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.pacer.supervised(ctx, "run", d.pacer.run) })
	g.Go(func() error { return d.pacer.supervised(ctx, "connection", d.connection.run) })
	g.Go(func() error { return d.pacer.supervised(ctx, "sensors", d.pacer.sensors.sampler.Run) })
	if d.claimer != nil {
		g.Go(func() error { return d.pacer.supervised(ctx, "claims", d.claim) })
	}
	g.Go(func() error { return d.pacer.supervised(ctx, "openGate", d.openGate) })
	return g.Wait()
}

// openGate answers the hooks, once the limits and the starts under way are known:
// before, every hook that waits since an earlier daemon would be let go at once.
// Until then they keep to the pace that they were told last.
func (d *Daemon) openGate(ctx context.Context) error {
	select {
	case <-d.limits:
	case <-d.answered():
	case <-ctx.Done():
		return nil
	}
	if !d.awaitPolicies(ctx) {
		return nil
	}
	select {
	case <-d.connection.firstSync:
	case <-ctx.Done():
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	if !isClosed(d.pacer.rejoin.back) {
		d.pacer.limiter.Freeze() // before any hook is back
		g.Go(func() error { return d.pacer.supervised(ctx, "thaw", d.pacer.thaw) })
	}
	g.Go(func() error { return d.pacer.supervised(ctx, "gate", d.serveGate) })
	return g.Wait()
}

// serveGate answers the hooks until ctx ends.
func (d *Daemon) serveGate(ctx context.Context) error {
	listener, err := socket.Listen(d.options.SocketPath(), func(why error) {
		d.options.Log.WithError(why).Warn("turned away from the gate")
	})
	if err != nil {
		return err
	}
	server := gate.NewServer(d.pacer, d.options.Log)
	server.OnPanic(func() { d.pacer.countPanic("gate") })
	return server.Serve(ctx, listener)
}

// answered gives a channel that is closed once it is known which configuration the
// API server has for this node, maybe none; nil when standalone.
func (d *Daemon) answered() <-chan struct{} {
	if d.source == nil {
		return nil
	}
	return d.source.Told()
}
