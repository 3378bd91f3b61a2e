package nri

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/nri/pkg/api"
)

// preRegisteredPlugin is the plugin of a daemon that is yet to be made.
type preRegisteredPlugin struct {
	*plugin
	l *PreRegistered
}

// Configure hands the text over, and waits until the daemon paces.
func (p *preRegisteredPlugin) Configure(ctx context.Context, config, runtime, version string) (api.EventMask, error) {
	most := p.l.shareOf(answerShare)
	late := time.After(most)
	p.l.config <- config
	select {
	case <-p.l.adopted:
		return p.plugin.Configure(ctx, config, runtime, version)
	case why := <-p.l.refused:
		p.l.answer.Store(&why)
	case <-late:
		why := fmt.Errorf("%w within %s", errPreRegisteredLate, most)
		if delayed := p.l.delayed.Load(); delayed != nil {
			why = fmt.Errorf("%w: %w", why, *delayed)
		}
		p.l.answer.Store(&why)
	}
	return 0, nil
}

// servePreRegistered lives as long as the connection to the runtime that started this
// process, and ctx.
func (c *Connection) servePreRegistered(ctx context.Context, l *PreRegistered) error {
	select {
	case <-c.options.Limits:
	case <-time.After(l.shareOf(limitsShare)):
	case <-ctx.Done():
		return nil
	}
	number := c.begin()
	l.adopt(c, func(runtime, version string) error {
		return c.configured(number, runtime, version, l.stub.RequestTimeout())
	}, func() { c.becameSynchronized(number) })
	select {
	case <-l.conn.closed:
	case <-ctx.Done():
	}
	c.end(time.Now())
	if ctx.Err() == nil {
		c.log.WithError(errPreRegisteredOver).Error("no connection to the runtime: pods start unpaced until another daemon paces them")
		c.mu.Lock()
		c.lastError = errPreRegisteredOver
		c.mu.Unlock()
		return errPreRegisteredOver
	}
	return nil
}
