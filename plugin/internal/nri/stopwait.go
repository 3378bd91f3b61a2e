package nri

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// listWithin is how long the daemon waits, from its start, for the pod watch to list the node's pods. Then it
	// registers without the list: pods start unpaced meanwhile, and the API server may be away.
	listWithin = 5 * time.Second
	// stopsEvery is the time between two checks for a container that is being stopped.
	stopsEvery = 100 * time.Millisecond
)

var errNotListed = errors.New("waiting to register: the pods of this node are not known yet; pods start unpaced meanwhile")

// StopSource knows which pods of the node are being stopped. Its methods are safe for concurrent use and do not block.
type StopSource interface {
	// Listed reports whether the pods of the node are known.
	Listed() bool
	// Stopping returns a pod, as "namespace/name", of which a container is being stopped, and the time at which the
	// container is killed. It returns false if there is none.
	Stopping(now time.Time) (pod string, by time.Time, ok bool)
}

// stopUnderWay is the error while a container of a pod is being stopped.
type stopUnderWay struct {
	pod string    // empty: the reader of the error may not know the pod
	by  time.Time // when the container is killed
}

func (s stopUnderWay) Error() string {
	pod := "a pod"
	if s.pod != "" {
		pod = "pod " + s.pod
	}
	return fmt.Sprintf("waiting to register: containerd is stopping a container of %s (until %s at the latest), and registering now would block all pods; pods start unpaced meanwhile",
		pod, s.by.UTC().Format(time.TimeOnly+"Z"))
}

// log returns a log with the fields that name the pod.
func (s stopUnderWay) log(to logrus.FieldLogger) logrus.FieldLogger {
	namespace, name, _ := strings.Cut(s.pod, "/")
	return to.WithFields(logrus.Fields{"pod_namespace": namespace, "pod_name": name})
}

// stopUnderWay returns which container of the node is being stopped at now; nil: none, or it is not known.
func (c *Connection) stopUnderWay(now time.Time) error {
	if c.options.Stops == nil {
		return nil
	}
	if pod, by, ok := c.options.Stops.Stopping(now); ok {
		return stopUnderWay{pod: pod, by: by}
	}
	return nil
}

// checkStops returns why the daemon must not register at now, and stores that for State; nil: it may register.
func (c *Connection) checkStops(now time.Time) error {
	why := c.stopUnderWay(now)
	if c.options.Stops != nil && !c.options.Stops.Listed() {
		why = nil
		if now.Before(c.listBy) {
			why = errNotListed
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = why
	return why
}

// awaitStops blocks until no container of the node is being stopped, or ctx ends.
//
// containerd holds a lock of NRI for reading during a graceful stop, and a plugin that registers takes that lock for
// writing. Every pod of the node would wait for the end of the stop, as long as the pod's grace period (containerd#14083).
func (c *Connection) awaitStops(ctx context.Context) {
	began := time.Now()
	var first stopUnderWay // the zero value: the wait was not logged
	err := wait.PollUntilContextCancel(ctx, stopsEvery, true, func(context.Context) (over bool, _ error) {
		why := c.checkStops(time.Now())
		if first.pod == "" && errors.As(why, &first) {
			first.log(c.log).WithField("until", first.by).Warn(why)
		}
		return why == nil, nil
	})
	if err == nil && first.pod != "" {
		first.log(c.log).WithField("waited", time.Since(began).Round(time.Millisecond)).
			Infof("the wait that began with pod %s is over, no container is being stopped any more: the daemon registers", first.pod)
	}
}
