package nri

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"
)

// Delay is a reason why the daemon does not register with the runtime yet. Pods start unpaced meanwhile.
type Delay string

// The delays. The metric registration_waits and the events on the node name them.
const (
	// ContainerStops means that containerd is stopping a container: see stopwait.go.
	ContainerStops Delay = "ContainerStops"
	// ListingTooLarge means that the runtime could not list its pods, and may end in the attempt: see listing.go.
	ListingTooLarge Delay = "ListingTooLarge"
	// RuntimeEnded means that the runtime ended when the daemon registered last: see ends.go.
	RuntimeEnded Delay = "RuntimeEnded"
)

// lookEvery is the time between two checks of a delay that lasts for long.
const lookEvery = time.Second

// delayed is the error while the daemon does not register.
type delayed struct {
	reason       Delay
	text, public string // public is for readers who may not know the names of pods
	fields       logrus.Fields
}

func (d *delayed) Error() string { return d.text }

// awaitTurn blocks until the daemon may register, or ctx ends.
func (c *Connection) awaitTurn(ctx context.Context) {
	var first, last, told Delay
	began := time.Now()
	for {
		now := time.Now()
		why := c.checkTurn(now)
		if why == nil {
			break
		}
		pause := stopsEvery
		if d, ok := errors.AsType[*delayed](why); ok {
			if d.reason != last {
				c.log.WithFields(d.fields).Warn(why)
				last = d.reason
			}
			first = cmp.Or(first, last)
			// Most stops end soon, and are worth no event.
			if last != told && (last != ContainerStops || now.Sub(c.stopsSince) >= stopsMost) {
				c.handler.Delayed(last, why)
				told = last
			}
			if last != ContainerStops {
				pause = lookEvery
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
	if first != "" {
		c.log.WithFields(logrus.Fields{"reason": first, "waited": time.Since(began).Round(time.Millisecond)}).
			Infof("nothing keeps the daemon from registering any more (first: %s)", first)
	}
}

// checkTurn returns why the daemon must not register at now, or nil if it may. It stores that for State.
func (c *Connection) checkTurn(now time.Time) error {
	why := c.checkStops(now)
	if why == nil {
		why = c.listing.tooLarge()
	}
	if why == nil {
		why = c.ends.recent(now)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = why
	return why
}

// Delayed returns why the daemon does not register yet, or "" if nothing delays it.
func (c *Connection) Delayed() Delay {
	c.mu.Lock()
	why := c.waits
	c.mu.Unlock()
	if d, ok := errors.AsType[*delayed](why); ok {
		return d.reason
	}
	return ""
}

// Paces returns why pods are not paced, or nil if they are. Unlike State.Err, it names no pod: every process on the
// node may read it.
func (c *Connection) Paces() error {
	err := c.State().Err
	if d, ok := errors.AsType[*delayed](err); ok {
		return errors.New(d.public)
	}
	return err
}
