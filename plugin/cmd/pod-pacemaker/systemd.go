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
	// readyEvery is how often the daemon is asked whether it is ready.
	readyEvery = 100 * time.Millisecond
	// readyMost is how long the units that start after this one, such as kubelet's, wait for a daemon that
	// is not ready. After that, systemd is notified in any case: a restart would not help.
	readyMost = 10 * time.Second
	// statusEvery is how often the status line is compared with the daemon's state.
	statusEvery = 5 * time.Second
)

// systemdUnit notifies systemd of the daemon's state.
type systemdUnit struct {
	daemon                 daemon
	log                    logrus.FieldLogger
	readyMost, statusEvery time.Duration
}

// serve notifies systemd when the daemon is ready, of every change of its status, that it is alive if the watchdog is
// on, and when it stops. It blocks until ctx ends. Without systemd it only waits.
func (u *systemdUnit) serve(ctx context.Context) {
	defer u.notify(systemd.SdNotifyStopping)
	_ = wait.PollUntilContextTimeout(ctx, readyEvery, u.readyMost, true, func(context.Context) (bool, error) {
		err := u.daemon.Ready()
		return err == nil || errors.Is(err, admin.ErrStandby), nil
	}) // the error is that the time is over, or that ctx has ended
	if ctx.Err() != nil {
		return
	}
	notified := u.status()
	u.notify(systemd.SdNotifyReady + "\nSTATUS=" + notified)
	watchdog, _ := systemd.SdWatchdogEnabled(false) // systemd sets the environment, and so it is right
	alive := time.Tick(watchdog / 3)                // it never ticks if the watchdog is off
	status := time.Tick(u.statusEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-alive:
			u.notifyAlive(ctx, watchdog/3)
		case <-status:
			if now := u.status(); now != notified {
				notified = now
				u.notify("STATUS=" + now)
			}
		}
	}
}

func (u *systemdUnit) notify(state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		u.log.WithError(err).WithField("state", state).Warn("cannot notify systemd")
	}
}

// status returns a line about the state of the daemon.
func (u *systemdUnit) status() string {
	switch err := u.daemon.Ready(); {
	case err == nil:
		return "ready: pods start as the configuration in force says"
	case errors.Is(err, admin.ErrStandby):
		return "standby: " + line(err.Error())
	default:
		return "pods start unpaced: " + line(err.Error())
	}
}

// notifyAlive feeds systemd's watchdog if the daemon makes decisions within the time.
func (u *systemdUnit) notifyAlive(ctx context.Context, most time.Duration) {
	soon, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	switch err := u.daemon.Alive(soon); {
	case err == nil:
		u.notify(systemd.SdNotifyWatchdog)
	case ctx.Err() == nil:
		u.log.WithError(err).Error("the daemon makes no decisions: it does not answer systemd's watchdog, which will restart it")
	}
}
