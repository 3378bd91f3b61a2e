package nri

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// listWithin is how long the daemon waits, from its start, for the pod watch to list the node's pods. Then it
	// registers without the list: pods start unpaced meanwhile, and the API server may be away.
	listWithin = 5 * time.Second
	// stopsEvery is the time between two checks for a container that is being stopped.
	stopsEvery = 100 * time.Millisecond
	// stopsMost is how long the daemon waits for a moment at which no container is being stopped. Then it registers as
	// soon as all stops end within heldMost, for which the registration blocks all pods of the node: Kubernetes' default
	// grace period, and the margin of a StopSource. A longer stop keeps the daemon away, because whoever deletes a pod
	// with a long grace period could else block the node for as long.
	stopsMost = time.Minute
	heldMost  = 35 * time.Second
)

var errNotListed = errors.New("waiting to register: the pods of this node are not known yet; pods start unpaced meanwhile")

// StopSource knows which pods of the node are being stopped. Its methods are safe for concurrent use and do not block.
type StopSource interface {
	// Listed reports whether the pods of the node are known.
	Listed() bool
	// Healthy reports whether they are known as the API server has them now.
	Healthy() bool
	// Stopping returns a pod, as "namespace/name", that has a container that is being stopped, and the time at which the
	// container is killed: the last of several, or zero if that is not known. It returns false if there is no such pod.
	// A pod whose UID is not in running has no container, whatever kubelet reported last, unless running is nil.
	Stopping(now time.Time, running map[string]bool) (pod string, by time.Time, ok bool)
	// Known reports whether the API server has a pod with this UID that has not ended.
	Known(uid string) bool
}

// stopOf is the error while a container of a pod is being stopped, until the time by at the latest, which is zero if it is
// not known.
func stopOf(pod string, by time.Time) *delayed {
	text := func(pod string) string {
		if by.IsZero() {
			return fmt.Sprintf("waiting to register: containerd may be stopping a container of %s for as long as the pod's first grace period (the pod was deleted by force, or its grace period was shortened, while the stop was under way, or the container cannot be killed), "+
				"and registering now would block all pods; pods start unpaced until the container has ended ('crictl stop --timeout 0' ends it, or else a reboot of the node)", pod)
		}
		return fmt.Sprintf("waiting to register: containerd is stopping a container of %s (until %s at the latest), and registering now would block all pods; pods start unpaced meanwhile",
			pod, by.UTC().Format(time.TimeOnly+"Z"))
	}
	namespace, name, _ := strings.Cut(pod, "/")
	return &delayed{ContainerStops, text("pod " + pod), text("a pod"), logrus.Fields{"pod_namespace": namespace, "pod_name": name, "until": by}}
}

// stopUnderWay returns the pod of which a container is being stopped at now, and the time at which that is killed: zero if
// it is not known, see [listing.gone]. ok is false if none is, or if that is not known.
func (c *Connection) stopUnderWay(now time.Time) (pod string, by time.Time, ok bool) {
	if c.options.Stops == nil {
		return "", time.Time{}, false
	}
	running := c.listing.containers()
	if pod = c.listing.gone(c.options.Stops); pod != "" {
		return pod, time.Time{}, true
	}
	return c.options.Stops.Stopping(now, running)
}

// checkStops returns why the daemon must not register at now because of a stop, or nil if it may.
//
// containerd holds a lock of NRI for reading during a graceful stop, and a plugin that registers takes that lock for
// writing. Every pod of the node would wait for the end of the stop, as long as the pod's grace period (containerd#14083).
func (c *Connection) checkStops(now time.Time) error {
	if c.options.Stops != nil && !c.options.Stops.Listed() {
		if now.Before(c.listBy) {
			return errNotListed
		}
		return nil
	}
	pod, by, ok := c.stopUnderWay(now)
	if !ok {
		c.stopsSince = time.Time{}
		return nil
	}
	if c.stopsSince.IsZero() {
		c.stopsSince = now
	}
	stop := stopOf(pod, by)
	if now.Sub(c.stopsSince) < stopsMost || by.IsZero() || by.Sub(now) > heldMost {
		return stop
	}
	c.log.WithFields(stop.fields).Warnf("containers were being stopped for %s without a pause: the daemon registers during the stop of pod %s, and all starts and stops of the node wait for its end (%s at the latest)",
		stopsMost, pod, by.UTC().Format(time.TimeOnly+"Z"))
	c.handler.RegistersDuringStop()
	c.stopsSince = time.Time{}
	return nil
}
