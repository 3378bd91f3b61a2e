package nri

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// listWithin is how long the pod watch may take, from the daemon's start, to list the
	// node's pods before the daemon registers with the runtime without it: pods start
	// unpaced meanwhile, and without an API server it is not known when to stop waiting.
	listWithin = 5 * time.Second
	// stopsEvery is the time between two looks at what is being stopped.
	stopsEvery = 100 * time.Millisecond
)

var errNotListed = errors.New("waits to register with the runtime until the pods of this node are known: pods start unpaced")

// StopSource knows which pods of the node are being stopped. Its methods are safe for concurrent
// use and do not block.
type StopSource interface {
	// Listed reports whether the pods of the node are known.
	Listed() bool
	// Stopping returns a pod, as "namespace/name", of which a container is being stopped, and by when
	// that is killed; false: there is none.
	Stopping(now time.Time) (pod string, by time.Time, ok bool)
}

// stopWait has the daemon register with the runtime while no container of the node is
// being stopped. containerd holds a lock of NRI for reading through a graceful stop, and a
// plugin that registers takes it for writing: every pod of the node would wait for the end
// of that stop, for as long as the pod's grace period (containerd#14083).
//
// The zero value has no source, and waits for nothing. Safe for concurrent
// use once begun.
type stopWait struct {
	source StopSource // nil: standalone
	listBy time.Time  // then the list is waited for no longer

	mu  sync.Mutex
	why error // what is waited for; nil: nothing
}

// begin starts the time for the first list.
func (w *stopWait) begin(now time.Time) { w.listBy = now.Add(listWithin) }

// reason tells why the daemon must not register at now; nil: it may.
func (w *stopWait) reason(now time.Time) error {
	if w.source == nil {
		return nil
	}
	if !w.source.Listed() {
		if now.Before(w.listBy) {
			return errNotListed
		}
		return nil
	}
	if pod, by, ok := w.source.Stopping(now); ok {
		return stopUnderWay{pod: pod, by: by}
	}
	return nil
}

// stopUnderWay says which pod is being stopped, and by when it is killed.
type stopUnderWay struct {
	pod string
	by  time.Time
}

func (s stopUnderWay) Error() string {
	return fmt.Sprintf("waits to register with the runtime while %s is being stopped, until %s at the latest, for every pod of this node would wait for that: pods start unpaced",
		s.pod, s.by.UTC().Format(time.TimeOnly+"Z"))
}

// stopping reports whether it is known that a container of the node is being stopped at now.
func (w *stopWait) stopping(now time.Time) bool {
	if w.source == nil {
		return false
	}
	_, _, ok := w.source.Stopping(now)
	return ok
}

// waitsFor returns what is waited for; nil: nothing.
func (w *stopWait) waitsFor() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why
}

// underWay reports whether the end of a stop is waited for.
func (w *stopWait) underWay() bool { return errors.As(w.waitsFor(), new(stopUnderWay)) }

// look takes note of the reason at now, and gives it.
func (w *stopWait) look(now time.Time) error {
	why := w.reason(now)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.why = why
	return why
}

// awaitStops blocks while a container of the node is being stopped, or ctx lives, and says
// so: in the log, in the metrics and, for as long, in what state tells.
func (c *Connection) awaitStops(ctx context.Context) {
	tick := time.Tick(stopsEvery)
	began, said := time.Now(), false
	for {
		why := c.stops.look(time.Now())
		var stop stopUnderWay
		if errors.As(why, &stop) && !said {
			said = true
			c.log.WithField("pod", stop.pod).WithField("until", stop.by).Warn(why)
		}
		if why == nil {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
	if said {
		c.log.WithField("waited", time.Since(began).Round(time.Millisecond)).Info("no container is being stopped any more: registers with the runtime")
	}
}
