package plugin

import (
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
)

// begin opens the account of a new connection, and gives its number.
func (c *connection) begin() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	return c.number
}

// configured takes over which runtime this is. It fails for a connection that has
// ended.
func (c *connection) configured(number int, runtime, version string, requestTimeout time.Duration) error {
	c.mu.Lock()
	if number != c.number {
		c.mu.Unlock()
		return errClosed
	}
	c.connected, c.since, c.name, c.version = true, time.Now(), runtime, version
	c.mu.Unlock()
	c.pacer.gate.setRuntime(runtime, version)
	c.pacer.refusals.runtime.setRuntime(runtime, version)
	c.pacer.requestTimeout.Store(int64(requestTimeout))
	log := c.log.WithFields(logrus.Fields{"runtime": runtime, "runtime_version": version})
	if why := c.pacer.gate.off(); why != "" {
		log = log.WithField("no_gate", why)
	}
	if why := c.pacer.refusals.runtime.barred(); why != "" {
		log = log.WithField("no_refusal_at_sandbox", why)
	}
	log.Info("registered with the runtime")
	return nil
}

func (c *connection) isConfigured(number int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connected && c.number == number
}

func (c *connection) becameSynchronized(number int) {
	c.mu.Lock()
	if number != c.number {
		c.mu.Unlock()
		return // it ended while the runtime told
	}
	lost := c.lost
	c.synchronized, c.lastError, c.lost = true, nil, false
	c.mu.Unlock()
	if lost {
		c.pacer.notices.node(corev1.EventTypeNormal, "RuntimeConnected", "Connected to the container runtime again: pods are paced")
	}
	c.first.Do(func() { close(c.firstSync) })
	c.log.Info("synchronized with the runtime: pods are paced")
}

// end closes the account of the connection at now, and tells how far it came.
func (c *connection) end(now time.Time) life {
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

// tellLost says on the node that a connection which was in use is gone.
func (c *connection) tellLost(err error) {
	c.mu.Lock()
	c.lost = true
	c.mu.Unlock()
	c.pacer.notices.node(corev1.EventTypeWarning, "RuntimeDisconnected",
		fmt.Sprintf("The connection to the container runtime is lost, pods start unpaced until it is back: %v", err))
}

// paces tells why pods are not paced; nil: they are.
func (c *connection) paces() error {
	_, _, _, _, err := c.state()
	return err
}

// state tells how far the connection is; err is nil while pods are paced.
func (c *connection) state() (connected, synchronized bool, name, version string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.lastError
	if waits := c.stops.waitsFor(); waits != nil {
		err = waits
	}
	switch {
	case c.synchronized:
		err = nil
	case c.connected:
		err = errNotSynced
	case err == nil:
		err = errNotConnected
	}
	return c.connected, c.synchronized, c.name, c.version, err
}
