package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// httpEvery is the time between two attempts to listen at an address that is in use, or that the node does not have yet.
const httpEvery = time.Second

// lead waits in standby for the lock of the run folder, and paces pods while this daemon has it. Sockets and the plugin's
// registration, which only one daemon can have at a time, begin after that and have ended before the lock is released.
// The last reports to the API server may take longer.
func (d *Daemon) lead(ctx context.Context) error {
	lock, err := d.options.awaitLock(ctx, d.standBy)
	if err != nil || lock == nil {
		return err
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
	if l := d.options.PreRegistered; l != nil {
		l.Delayed(fmt.Errorf("%w (%s)", admin.ErrStandby, holder))
	}
	d.options.Log.WithField("lock", d.options.lockPath()).Infof("standby: %v", why)
}

// serveHTTP serves metrics and health until ctx ends. If it cannot, it tries again: another process may use the address,
// such as the daemon for which this one stands by, or the node may not have it yet. Pods are paced without metrics too.
func (d *Daemon) serveHTTP(ctx context.Context) error {
	log := d.options.Log.WithField("address", d.options.HTTPAddress)
	logged := ""
	_ = wait.PollUntilContextCancel(ctx, httpEvery, true, func(ctx context.Context) (done bool, _ error) {
		err := admin.ServeHTTP(ctx, d.options.HTTPAddress, d, d.observer.Registry())
		if err != nil && logged != err.Error() {
			logged = err.Error()
			log.WithError(err).Warn("metrics and health are not served; trying again until they are")
		}
		return err == nil, nil
	}) // the only error is that ctx ended
	return nil
}
