package plugin

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/crd/faultlog"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
)

// httpEvery is the time between two attempts to listen at an address that is in use, or that the node does not have yet.
const httpEvery = time.Second

// delays are what the label of the metric registration_waits may be.
var delays = []string{string(nri.ContainerStops), string(nri.ListingTooLarge), string(nri.RuntimeEnded)}

// metrics returns a registry of all metrics of the daemon.
func (d *Daemon) metrics() *prometheus.Registry {
	return d.observer.WithScraped(observe.Scraped{
		Groups: d.starts.Groups, Status: d.Status, Policies: d.policyStates, Claims: d.claims,
		Standby: func() bool { return d.standby.Load() != nil }, Delay: func() string { return string(d.connection.Delayed()) }, Delays: delays, LogDropped: d.options.LogDropped,
	})
}

// serveHTTP serves metrics and health until ctx ends. If it cannot, it tries again: another process may use the address,
// such as the daemon for which this one stands by, or the node may not have it yet. Pods are paced without metrics too.
func (d *Daemon) serveHTTP(ctx context.Context) error {
	log := d.options.Log.WithField("address", d.options.HTTPAddress)
	metrics, faults := d.metrics(), new(faultlog.Log)
	_ = wait.PollUntilContextCancel(ctx, httpEvery, true, func(ctx context.Context) (done bool, _ error) {
		err := admin.ServeHTTP(ctx, d.options.HTTPAddress, d, metrics)
		if err != nil && faults.Changed(err.Error()) {
			log.WithError(err).Warn("metrics and health are not served at this address (--http); trying again until they are")
		}
		return err == nil, nil
	}) // the only error is that ctx ended
	return nil
}
