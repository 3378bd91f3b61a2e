package nri

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// State is the state of a connection.
type State struct {
	Connected, Synchronized bool
	Runtime, Version        string // as the runtime reports them; empty before its first registration
	Err                     error  // why pods are not paced; nil: they are
}

// begin returns the number of a new connection.
func (c *Connection) begin() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	return c.number
}

// configured stores what the runtime reports of itself. It returns errClosed if the connection with this number has ended.
func (c *Connection) configured(number int, runtime, version string, requestTimeout time.Duration) error {
	c.mu.Lock()
	if number != c.number {
		c.mu.Unlock()
		return errClosed
	}
	c.connected, c.since, c.name, c.version, c.timeout = true, time.Now(), runtime, version, requestTimeout
	c.mu.Unlock()
	fields := c.handler.Connected(runtime, version, requestTimeout)
	text := []string{"registered with the runtime " + runtime + " " + version}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text = append(text, fmt.Sprintf("%s: %v", strings.ReplaceAll(name, "_", " "), fields[name]))
	}
	c.log.WithFields(logrus.Fields{"runtime": runtime, "runtime_version": version}).WithFields(fields).Info(strings.Join(text, "; "))
	return nil
}

// requestTimeout returns the time after which the runtime gives up a request; 0: it is not known yet.
func (c *Connection) requestTimeout() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timeout
}

func (c *Connection) becameSynchronized(number int) {
	c.mu.Lock()
	if number != c.number {
		c.mu.Unlock()
		return // it ended during the call
	}
	lost := c.lost
	c.synchronized, c.lastError, c.lost = true, nil, false
	c.mu.Unlock()
	if lost {
		c.handler.Reconnected()
	}
	c.first.Do(func() { close(c.synced) })
	c.log.Info("synchronized with the runtime: pods are paced")
}

// end marks the connection as ended at now, and returns how it went.
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

// lose reports to the handler that a connection which was in use has ended.
func (c *Connection) lose(err error) {
	c.mu.Lock()
	c.lost = true
	c.mu.Unlock()
	c.handler.Lost(err)
}

// State returns the state of the connection.
func (c *Connection) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{Connected: c.connected, Synchronized: c.synchronized, Runtime: c.name, Version: c.version, Err: c.lastError}
	switch {
	case c.synchronized:
		s.Err = nil
	case c.connected:
		s.Err = errNotSynced
	case c.waits != nil:
		s.Err = c.waits
	case s.Err == nil:
		s.Err = errNotConnected
	}
	return s
}
