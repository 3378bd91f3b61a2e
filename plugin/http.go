package plugin

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// httpEvery is the time between two attempts to listen at an address that is in use, or that the node does not have yet.
const httpEvery = time.Second

// serveHTTP serves metrics and health until ctx ends. If it cannot, it tries again: another process may use the address,
// such as the daemon for which this one stands by, or the node may not have it yet. Pods are paced without metrics too.
func (d *Daemon) serveHTTP(ctx context.Context) error {
	log := d.options.Log.WithField("address", d.options.HTTPAddress)
	logged := ""
	_ = wait.PollUntilContextCancel(ctx, httpEvery, true, func(ctx context.Context) (done bool, _ error) {
		err := admin.ServeHTTP(ctx, d.options.HTTPAddress, d, d.observer.Registry())
		if err != nil && logged != err.Error() {
			logged = err.Error()
			log.WithError(err).Warn("metrics and health are not served at this address (--http); trying again until they are")
		}
		return err == nil, nil
	}) // the only error is that ctx ended
	return nil
}
