package nri

import (
	"time"

	"github.com/sirupsen/logrus"
)

// begin opens the account of a new connection, and gives its number.
func (c *Connection) begin() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	return c.number
}

// configured takes over which runtime this is. It fails for a connection that has
// ended.
func (c *Connection) configured(number int, runtime, version string, requestTimeout time.Duration) error {
	c.mu.Lock()
	if number != c.number {
		c.mu.Unlock()
		return errClosed
	}
	c.connected, c.since, c.name, c.version = true, time.Now(), runtime, version
	c.mu.Unlock()
	c.timeout.Store(int64(requestTimeout))
	fields := c.handler.Connected(runtime, version, requestTimeout)
	c.log.WithFields(logrus.Fields{"runtime": runtime, "runtime_version": version}).WithFields(fields).Info("registered with the runtime")
	return nil
}

func (c *Connection) isConfigured(number int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connected && c.number == number
}

func (c *Connection) becameSynchronized(number int) {
	c.mu.Lock()
	if number != c.number {
		c.mu.Unlock()
		return // it ended while the runtime told
	}
	lost := c.lost
	c.synchronized, c.lastError, c.lost = true, nil, false
	c.mu.Unlock()
	if lost {
		c.handler.Back()
	}
	c.first.Do(func() { close(c.synced) })
	c.log.Info("synchronized with the runtime: pods are paced")
}

// end closes the account of the connection at now, and tells how far it came.
func (c *Connection) end(now time.Time) life {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := life{synchronized: c.synchronized}
	if c.connected {
		l.registered, l.lasted = true, now.Sub(c.since)
	}
	c.number++
	c.connected, c.synchronized = false, false
	return l
}

// lose takes note that a connection which was in use is gone.
func (c *Connection) lose(err error) {
	c.mu.Lock()
	c.lost = true
	c.mu.Unlock()
	c.handler.Lost(err)
}

// RegistrationWaits reports whether the daemon waits to register until a stop is over.
func (c *Connection) RegistrationWaits() bool { return c.stops.underWay() }

// Paces returns why pods are not paced; nil: they are.
func (c *Connection) Paces() error { return c.State().Err }

// State returns how far the connection is.
func (c *Connection) State() State {
	waits := c.stops.waitsFor()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{Connected: c.connected, Synchronized: c.synchronized, Runtime: c.name, Version: c.version, Err: c.lastError}
	switch {
	case c.synchronized:
		s.Err = nil
	case c.connected:
		s.Err = errNotSynced
	case waits != nil:
		s.Err = waits
	case s.Err == nil:
		s.Err = errNotConnected
	}
	return s
}
