package plugin

import (
	"context"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
)

// installHook installs the hook of the gate on the host. If that fails, pods are refused instead.
func installHook(g *waiting.Gate, o Options) {
	log := o.Log.WithField("path", o.GatePath)
	installed, err := g.Install()
	if err != nil {
		log.WithError(err).Error("cannot install the hook of the gate: pods are refused instead")
	}
	if installed {
		log.Info("installed the hook of the gate")
	}
}

// answerHooks serves the gate's socket once the limits and the starts under way are known. Before that, the daemon would
// admit at once every hook that waits since an earlier daemon. Until then the hooks keep to the pace of their
// last answer.
func (d *Daemon) answerHooks(ctx context.Context) error {
	select {
	case <-d.applier.limits:
	case <-d.answered():
	case <-ctx.Done():
		return nil
	}
	if d.source != nil && !awaitPolicies(ctx, d.source, d.options.Log) {
		return nil
	}
	select {
	case <-d.connection.Synced():
	case <-ctx.Done():
		return nil
	}
	parts := []part{{"gate", d.serveGate}}
	if d.starts.Hooks.Freeze() { // before any hook asks again
		parts = append(parts, part{"thaw", d.starts.Hooks.Thaw})
	}
	return d.runParts(ctx, parts...)
}

// serveGate answers the hooks until ctx ends.
func (d *Daemon) serveGate(ctx context.Context) error {
	listener, err := rundir.Listen(d.options.SocketPath())
	if err != nil {
		return err
	}
	return gate.NewServer(d.waiting, func() { d.observer.CountPanic("gate") }, d.options.Log).Serve(ctx, listener)
}
