package nri

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// Timeouts are the time-outs that the runtime reports. Each is zero until it is known.
type Timeouts struct {
	Registration time.Duration // of a plugin that registers
	Request      time.Duration // after which it gives up a call
}

// Warning says what is wrong with the time-out of requests, or returns "" if nothing is.
func (t Timeouts) Warning() string {
	const set = "set plugin_request_timeout in containerd's section io.containerd.nri.v1.nri to 2s, its default"
	switch {
	case t.Request <= 0:
		return ""
	case t.Request < time.Second:
		return fmt.Sprintf("the runtime waits for an answer for %s only, and starts pods unpaced after a busy moment of the daemon: %s", t.Request, set)
	case t.Request > lateMost:
		return fmt.Sprintf("the runtime waits for an answer for %s, and a daemon that hangs holds up all pods of the node for as long: %s", t.Request, set)
	}
	return ""
}

// State is the state of a connection.
type State struct {
	Timeouts
	Connected, Synchronized bool
	Runtime, Version        string // as the runtime reports them; empty before its first registration
	Err                     error  // why pods are not paced; nil if they are
}

// begin returns the number of a new connection.
func (c *Connection) begin() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	return c.number
}

// configured stores what the runtime reports of itself. It returns errClosed if the connection with this number has ended.
func (c *Connection) configured(number int, runtime, version string, timeouts Timeouts) error {
	c.mu.Lock()
	if number != c.number {
		c.mu.Unlock()
		return errClosed
	}
	c.connected, c.since, c.name, c.version, c.timeouts = true, time.Now(), runtime, version, timeouts
	c.mu.Unlock()
	fields := c.handler.Connected(runtime, version, timeouts.Request)
	text := []string{fmt.Sprintf("registered with the runtime %s %s, which waits for an answer for %s", runtime, version, timeouts.Request)}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text = append(text, fmt.Sprintf("%s: %v", strings.ReplaceAll(name, "_", " "), fields[name]))
	}
	c.log.WithFields(logrus.Fields{
		"runtime": runtime, "runtime_version": version, "request_timeout_ms": timeouts.Request.Milliseconds(), "registration_timeout_ms": timeouts.Registration.Milliseconds(),
	}).WithFields(fields).Info(strings.Join(text, "; "))
	if says := timeouts.Warning(); says != "" {
		c.log.Warn(says)
	}
	return nil
}

// lateAfter returns how long a call may take: as long as the runtime waits, and lateMost at most, or 0 if that is not
// known yet.
func (c *Connection) lateAfter() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(c.timeouts.Request, lateMost)
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
	s := State{Timeouts: c.timeouts, Connected: c.connected, Synchronized: c.synchronized, Runtime: c.name, Version: c.version, Err: c.lastError}
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
