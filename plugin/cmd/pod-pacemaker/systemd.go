package main

import (
	"context"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"
)

// readyEvery is the time between two questions whether the daemon is ready; they
// end with the first yes.
const readyEvery = 100 * time.Millisecond

// tellSystemd tells systemd when the daemon is ready and when it stops. It blocks
// until ctx ends. Without systemd it only waits.
func tellSystemd(ctx context.Context, d daemon, log logrus.FieldLogger) {
	notify := func(state string) {
		if _, err := systemd.SdNotify(false, state); err != nil {
			log.WithError(err).WithField("state", state).Warn("systemd was not told")
		}
	}
	if awaitReady(ctx, d) {
		notify(systemd.SdNotifyReady)
	}
	<-ctx.Done()
	notify(systemd.SdNotifyStopping)
}

// awaitReady blocks until the daemon is ready; false: ctx ended first.
func awaitReady(ctx context.Context, d daemon) bool {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for d.Ready() != nil {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}
