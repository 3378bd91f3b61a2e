package plugin

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/crd/faultlog"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
)

// serveEvery is the time between two attempts to listen where that fails.
const serveEvery = time.Second

// delays are what the label of the metric registration_waits may be.
var delays = []string{string(nri.ContainerStops), string(nri.ListingTooLarge), string(nri.RuntimeEnded)}

// metrics returns a registry of all metrics of the daemon.
func (d *Daemon) metrics() *prometheus.Registry {
	return d.observer.WithScraped(observe.Scraped{
		Groups: d.starts.Groups, Status: d.Status, Policies: d.policyStates, Claims: d.claims,
		Standby: func() bool { return d.standby.Load() != nil }, Delay: func() string { return string(d.connection.Delayed()) }, Delays: delays, LogDropped: d.options.LogDropped,
	})
}

// serveHTTP serves metrics and health until ctx ends.
func (d *Daemon) serveHTTP(ctx context.Context) error {
	metrics := d.metrics()
	return serveAgain(ctx, d.options.Log.WithField("address", d.options.HTTPAddress), "metrics and health are not served at this address (--http)",
		func(ctx context.Context) error { return admin.ServeHTTP(ctx, d.options.HTTPAddress, d, metrics) })
}

// serveWhy answers questions about pods until ctx ends.
func (d *Daemon) serveWhy(ctx context.Context) error {
	return serveAgain(ctx, d.options.Log.WithField("path", d.options.WhySocket), "questions about pods are not answered at this socket (--why-socket)",
		func(ctx context.Context) error { return admin.ServeWhy(ctx, d.options.WhySocket, d) })
}

// serveAgain calls serve until ctx ends, and then returns nil. If serve fails, serveAgain logs the fault and tries again:
// another process may use the address, such as the daemon for which this one stands by, the node may not have it yet, or
// its disk may be full. Pods are paced meanwhile.
func serveAgain(ctx context.Context, log logrus.FieldLogger, fault string, serve func(context.Context) error) error {
	var faults faultlog.Log
	_ = wait.PollUntilContextCancel(ctx, serveEvery, true, func(ctx context.Context) (done bool, _ error) {
		began := time.Now()
		err := serve(ctx)
		if time.Since(began) > serveEvery { // it served meanwhile
			faults.Changed("")
		}
		if err != nil && faults.Changed(err.Error()) {
			log.WithError(err).Warn(fault + "; trying again until they are")
		}
		return err == nil, nil
	}) // the only error is that ctx ended
	return nil
}
