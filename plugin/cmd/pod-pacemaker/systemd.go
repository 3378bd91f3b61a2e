package main

import (
	"context"
	"errors"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

const (
	// readyEvery is the time between two questions whether the daemon is ready, until
	// systemd was told.
	readyEvery = 100 * time.Millisecond
	// readyMost is how long the units that start after this one, kubelet's among them,
	// wait for a daemon that has no runtime to pace yet. It keeps trying; to start it
	// again would not mend it.
	readyMost = 10 * time.Second
	// statusEvery is the time between two looks at what systemd shows of the daemon.
	statusEvery = 5 * time.Second
)

// systemdUnit is this process as systemd sees it.
type systemdUnit struct {
	daemon                 daemon
	log                    logrus.FieldLogger
	readyMost, statusEvery time.Duration
	notified               string // the status that was sent last
}

// serve tells systemd when the daemon can serve, how it is, that it lives, and
// when it stops. It blocks until ctx ends. Without systemd it only waits.
func (u *systemdUnit) serve(ctx context.Context) {
	if u.awaitReady(ctx) {
		u.notified = u.status()
		u.notify(systemd.SdNotifyReady + "\nSTATUS=" + u.notified)
		u.notifyChanges(ctx)
	}
	u.notify(systemd.SdNotifyStopping)
}

func (u *systemdUnit) notify(state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		u.log.WithError(err).WithField("state", state).Warn("systemd was not told")
	}
}

// awaitReady blocks until the daemon is ready, or has had the time for it; false:
// ctx ended first.
func (u *systemdUnit) awaitReady(ctx context.Context) bool {
	_ = wait.PollUntilContextTimeout(ctx, readyEvery, u.readyMost, true, func(context.Context) (bool, error) {
		err := u.daemon.Ready()
		return err == nil || errors.Is(err, admin.ErrStandby), nil
	}) // the error is that one of the two times is over
	return ctx.Err() == nil
}

// status says in a line how the daemon is.
func (u *systemdUnit) status() string {
	switch err := u.daemon.Ready(); {
	case err == nil:
		return "paces the pods of this node"
	case errors.Is(err, admin.ErrStandby):
		return "standby: " + oneLine(err.Error())
	default:
		return "pods start unpaced: " + oneLine(err.Error())
	}
}

// notifyChanges tells systemd of every change, and, where it watches, that the
// daemon's decisions go on. It blocks until ctx ends.
func (u *systemdUnit) notifyChanges(ctx context.Context) {
	watchdog, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		u.log.WithError(err).Warn("systemd's watchdog cannot be served")
	}
	alive := time.Tick(watchdog / 3) // never, where systemd does not watch
	status := time.Tick(u.statusEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-alive:
			u.notifyAlive(ctx, watchdog/3)
		case <-status:
			if now := u.status(); now != u.notified {
				u.notified = now
				u.notify("STATUS=" + now)
			}
		}
	}
}

// notifyAlive tells systemd that the daemon decides, if that shows in time.
func (u *systemdUnit) notifyAlive(ctx context.Context, most time.Duration) {
	soon, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	switch err := u.daemon.Alive(soon); {
	case err == nil:
		u.notify(systemd.SdNotifyWatchdog)
	case ctx.Err() == nil:
		u.log.WithError(err).Error("systemd's watchdog is not told that the daemon lives")
	}
}
