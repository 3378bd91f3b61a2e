package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/signals"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/startuptaint"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
)

// Daemon paces the pods of one node. Create it with New.
type Daemon struct {
	options    Options
	boot       string // the kernel's ID of this boot; empty if it is not known
	since      time.Time
	file       crd.Documents
	fileFault  error // why the daemon left its ConfigFile out; nil if it did not
	observer   *observe.Observer
	signals    *signals.Monitor
	starts     *starts.Starts
	waiting    *waiting.Chooser
	memory     *learning.Memory
	connection *nri.Connection
	applier    *applier
	cni        *cni.Installer  // nil if no waiting room is installed
	cluster    *cluster        // nil when standalone
	source     *crd.Source     // of the configuration and the StartPolicies in force; the same
	claimer    *leases.Claimer // the same
	listen     rundir.Listening
	answering  func() // is called when the daemon begins to answer pods at the gate's socket

	pacing  atomic.Bool
	standby atomic.Pointer[error] // why another daemon paces this node's pods; nil if none does
	seen    atomic.Bool           // the DaemonSet was there
}

// New returns a daemon. It reads the configuration file and the credentials for the API server, and starts nothing.
// The error wraps the error of [Options.Validate], or crd.ErrInvalid if the daemon is standalone and the content of
// ConfigFile is invalid. After any other error, a later call may succeed. A daemon with an API server runs without an
// invalid file, and is not ready while no PacemakerConfig selects the node.
func New(o Options) (*Daemon, error) { return newWith(o, defaultTuning()) }

func newWith(o Options, t tuning) (*Daemon, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("invalid options: %w", err)
	}
	found, err := o.Cores("")
	if found.Count == 0 {
		return nil, err
	}
	coresKnown := err == nil
	if err != nil {
		o.Log.Warnf("which CPUs pods can use is not known in full, %s count: %v", found, err)
	}
	var file crd.Documents
	var fileFault error
	if o.ConfigFile != "" {
		file, err = crd.Load(o.ConfigFile)
		switch {
		case errors.Is(err, crd.ErrInvalid) && !o.Standalone():
			fileFault = fmt.Errorf("the file of --config is left out: %w", err)
			o.Log.Error(fileFault)
		case err != nil:
			return nil, err
		}
		if says := file.Ignored(o.Instance); says != "" {
			o.Log.Warn(o.ConfigFile + ": " + says)
		}
	}
	var c *clients
	if !o.Standalone() {
		if c, err = newClients(o); err != nil {
			return nil, err
		}
	}
	d := newDaemon(o, found, file, c, t)
	d.applier.coresKnown, d.fileFault = coresKnown, fileFault
	return d, nil
}

// Run paces pods until ctx ends, and then returns nil. It blocks. Call it once. While another daemon uses the same run
// folder, this one stands by, and takes over when the other ends. If the daemon's DaemonSet was removed or does not
// select the node, Run removes the daemon's files from the host before it returns; if only the waiting room was
// switched off, or has other folders now, the files of that. It returns an error if this fails. It returns an error
// early if the run folder cannot be locked, or if one of the sockets in it cannot be served.
func (d *Daemon) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if d.cluster != nil {
		defer d.cluster.recorder.Start()()
		d.source.Begin() // before containerd calls
		g.Go(func() error { d.cluster.run(ctx, d.source, d.starts); return nil })
	} else {
		d.applier.setPolicies(d.file.Policies)
		d.applier.configure(crd.FromFile(d.file.Config))
	}
	g.Go(func() error { return d.lead(ctx) })
	var parts []part
	if d.options.HTTPAddress != "" {
		parts = append(parts, part{"http", d.serveHTTP})
	}
	if d.cluster != nil && d.options.StartupTaint != "" {
		parts = append(parts, part{"removeStartupTaint", forever(startuptaint.Remover{
			Client: d.cluster.kube, Key: d.options.StartupTaint, Node: d.source.Node, Paced: d.nodePaced, Log: d.options.Log,
		}.Run)})
	}
	if d.cluster != nil && d.options.DaemonSet != "" {
		parts = append(parts, part{"seeDaemonSet", d.seeDaemonSet})
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
	d.memory.Load() // another daemon may have written it until now, as the record of what was ready
	d.starts.Begin(time.Now(), d.options.readyOnce(d.boot))
	parts := []part{
		{"run", d.starts.Run}, {"connection", d.connection.Run}, {"signals", d.signals.Run}, {"memory", d.memory.Run},
		{"answerHooks", d.answerHooks}, {"followCores", func(ctx context.Context) error { return d.applier.followCores(ctx, d.options) }},
		{"keepHook", func(ctx context.Context) error { return keepHook(ctx, d.waiting.Gate, d.options) }},
		{"admin", func(ctx context.Context) error {
			return admin.ServeAdmin(ctx, d.listen, d.options.AdminPath(), d, d.applier)
		}},
	}
	if d.options.WhySocket != "" {
		parts = append(parts, part{"why", d.serveWhy})
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
	if d.source == nil {
		return nil
	}
	return d.source.Ready()
}
