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

// installHook copies the hook to the host, where runc finds it. A running hook stays the old one. After an error the hook
// on the host may be that of another version, which does not understand what this daemon gives it.
func (o Options) installHook() error {
	program := filepath.Join(o.Programs, HookName)
	if o.GatePath == "" || o.Programs == "" || program == o.GatePath {
		return nil
	}
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return nil // an administrator has installed the hook, or there is none
	}
	err := os.MkdirAll(filepath.Dir(o.GatePath), 0o755) //nolint:gosec // the runtime's users may look in
	wrote := false
	if err == nil {
		wrote, err = wholefile.Install(program, o.GatePath)
	}
	if wrote && err == nil {
		o.Log.WithField("path", o.GatePath).Info("installed the hook of the gate")
	}
	return err
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
