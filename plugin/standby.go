package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
)

// lead waits in standby for the lock of the run folder, and paces pods while this daemon has it. Sockets and the plugin's
// registration, which only one daemon can have at a time, begin after that and have ended before the lock is released.
// The last reports to the API server may take longer.
func (d *Daemon) lead(ctx context.Context) error {
	lock, err := rundir.AwaitLock(ctx, d.options.RunDir, d.options.Version, d.standBy)
	if err != nil || lock == nil {
		return err
	}
	// kubelet makes the folder for everybody, and who can open it can lock the hooks' door; see package wire.
	if err := os.Chmod(d.options.RunDir, 0o700); err != nil { //nolint:gosec // it is a folder
		d.options.Log.WithError(err).Warn("the run folder cannot be closed to other users: they could keep hooks waiting while no daemon runs")
	}
	if d.standby.Swap(nil) != nil {
		d.options.Log.Info("standby ends: the other daemon is gone, this one paces pods")
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return errors.Join(d.pace(ctx), lock.Close()) })
	g.Go(func() error { return d.observer.Supervised(ctx, "report", d.report) })
	return g.Wait()
}

// Alive implements admin.Provider. A daemon in standby is alive.
func (d *Daemon) Alive(ctx context.Context) error {
	if !d.pacing.Load() {
		return nil
	}
	return d.starts.Alive(ctx)
}

// standBy is called when another daemon has the lock.
func (d *Daemon) standBy(holder string) {
	if holder == "" {
		holder = "unknown process"
	}
	why := fmt.Errorf("%w (%s), and this one takes over when that ends", admin.ErrStandby, holder)
	d.standby.Store(&why)
	d.options.Log.WithField("lock", rundir.LockPath(d.options.RunDir)).Infof("standby: %v", why)
}

// nodePaced returns nil if the node's pods are paced: by this daemon, or by the one for which it stands by. It asks that
// one: to have the lock is not to pace. It blocks meanwhile.
func (d *Daemon) nodePaced(ctx context.Context) error {
	err := d.Ready()
	if !errors.Is(err, admin.ErrStandby) {
		return err
	}
	other, err := admin.NewClient(d.options.AdminPath()).Status(ctx)
	if err == nil && !other.Ready {
		err = fmt.Errorf("the daemon that has the lock does not pace pods: %s", other.NotReady)
	}
	return err
}
