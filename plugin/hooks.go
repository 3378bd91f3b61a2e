package plugin

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// hookEvery is the time between two looks whether the hook of the gate is on the host.
const hookEvery = time.Minute

// installHook installs the hook of the gate on the host if it is not there. If that fails, pods are refused instead, and
// the first failure is logged. It returns whether it failed.
func installHook(g *waiting.Gate, o Options, hasFailed bool) (fails bool) {
	log := o.Log.WithField("path", o.GatePath)
	installed, err := g.Install()
	if err != nil && !hasFailed {
		log.WithError(err).Error("cannot install the hook of the gate: pods are refused instead, and the daemon tries again each minute")
	}
	if installed {
		log.Info("installed the hook of the gate")
	}
	return err != nil
}

// keepHook installs the hook, and keeps it installed until ctx ends: a full disk may get free, and another program may
// remove the hook. It also removes old notes of the waiting room. The runtime does not wait for the first attempt.
func keepHook(ctx context.Context, g *waiting.Gate, o Options) error {
	fails := installHook(g, o, false)
	for tick := time.Tick(hookEvery); ; {
		select {
		case <-tick:
			fails = installHook(g, o, fails)
			removeNotes(o, time.Now())
		case <-ctx.Done():
			return nil
		}
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
	if d.starts.Freeze() { // before any hook asks again
		parts = append(parts, part{"thaw", d.starts.Thaw})
	}
	return d.runParts(ctx, parts...)
}

// serveGate answers the hooks until ctx ends.
func (d *Daemon) serveGate(ctx context.Context) error {
	_ = os.Remove(d.options.gonePath()) // it need not be there; until it is gone, pods do not wait for an answer
	server := gate.NewServer(d.passesOf(d.waiting), func() { d.observer.CountPanic("gate") }, d.options.Log)
	return d.listen(ctx, d.options.SocketPath(), func(ctx context.Context, l net.Listener) error {
		d.answering()
		return server.Serve(ctx, l)
	})
}
