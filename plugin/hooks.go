package plugin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/socket"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
)

// HookName is the file name of the hook's program.
const HookName = "pacemaker-gate"

// installHook copies the hook to the host, where runc finds it. A running hook stays the old one. If the hook cannot be
// copied, one that is on the host already is used.
func (o Options) installHook() {
	program, log := filepath.Join(o.Programs, HookName), o.Log.WithField("path", o.GatePath)
	if o.GatePath == "" || o.Programs == "" || program == o.GatePath {
		return
	}
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return // an administrator has installed the hook, or there is none
	}
	err := os.MkdirAll(filepath.Dir(o.GatePath), 0o755) //nolint:gosec // the runtime's users may look in
	wrote := false
	if err == nil {
		wrote, err = wholefile.Install(program, o.GatePath)
	}
	switch {
	case err != nil:
		log.WithError(err).Error("cannot install the hook of the gate")
	case wrote:
		log.Info("installed the hook of the gate")
	}
}

// answerHooks serves the gate's socket once the limits and the starts under way are known. Before that, the daemon would
// admit at once every hook that waits since an earlier daemon. Until then the hooks keep to the pace of their
// last answer.
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
	parts := []part{{"gate", d.serveGate}}
	if d.starts.Hooks.Freeze() { // before any hook asks again
		parts = append(parts, part{"thaw", d.starts.Hooks.Thaw})
	}
	return d.runParts(ctx, parts...)
}

// serveGate answers the hooks until ctx ends.
func (d *Daemon) serveGate(ctx context.Context) error {
	listener, err := socket.Listen(d.options.SocketPath())
	if err != nil {
		return err
	}
	return gate.NewServer(d.waiting, func() { d.observer.CountPanic("gate") }, d.options.Log).Serve(ctx, listener)
}
