package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// httpEvery is the time between two tries to listen at an address that is not free, or
// not there yet.
const httpEvery = time.Second

// lead paces pods while this daemon has the run folder's lock, for which it waits
// in standby. What another daemon may have at the same time only once, sockets and
// the plugin's place in the runtime, begins after that, and has ended before the
// lock is let go. What the API server is told last may take longer.
func (d *Daemon) lead(ctx context.Context) error {
	lock, err := d.options.awaitLock(ctx, d.standBy)
	if err != nil || lock == nil {
		return err
	}
	if d.standby.Swap(nil) != nil {
		d.options.Log.Info("standby ends: the other daemon is gone, this one paces pods")
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.paceWith(ctx, lock) })
	g.Go(func() error { return d.observer.Supervised(ctx, "report", d.report) })
	return g.Wait()
}

// paceWith paces pods until ctx ends, and lets the lock go.
func (d *Daemon) paceWith(ctx context.Context, lock *os.File) (err error) {
	defer func() { err = errors.Join(err, lock.Close()) }()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.pace(ctx) })
	g.Go(func() error {
		return d.observer.Supervised(ctx, "admin", func(ctx context.Context) error { return admin.ServeAdmin(ctx, d.options.AdminPath(), d) })
	})
	return g.Wait()
}

// Alive implements admin.Provider. A daemon that stands by lives.
func (d *Daemon) Alive(ctx context.Context) error {
	if !d.pacing.Load() {
		return nil
	}
	return d.starts.Alive(ctx)
}

// standBy takes note that another daemon has the lock.
func (d *Daemon) standBy(holder string) {
	if holder == "" {
		holder = "it does not say who it is"
	}
	why := fmt.Errorf("%w (%s), and this one takes over when that ends", admin.ErrStandby, holder)
	d.standby.Store(&why)
	if l := d.options.PreRegistered; l != nil {
		other := fmt.Errorf("%w (%s)", admin.ErrStandby, holder)
		l.Delayed(other) // told if that does not end in time
	}
	d.options.Log.WithField("lock", d.options.lockPath()).Infof("standby: %v", why)
}

// serveHTTP serves metrics and health until ctx ends. Where it cannot, it tries again:
// another process may have the address, as the daemon that this one stands by for, or
// the node may not have it yet. Pods are paced without metrics too.
func (d *Daemon) serveHTTP(ctx context.Context) error {
	log := d.options.Log.WithField("address", d.options.HTTPAddress)
	said := ""
	_ = wait.PollUntilContextCancel(ctx, httpEvery, true, func(ctx context.Context) (done bool, _ error) {
		err := admin.ServeHTTP(ctx, d.options.HTTPAddress, d, d.observer.Registry())
		if err != nil && said != err.Error() {
			said = err.Error()
			log.WithError(err).Warn("metrics and health are not served; trying again until they are")
		}
		return err == nil, nil
	}) // the only error is that ctx ended
	return nil
}
