package gate

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// decide waits for the backend's verdict on h and sends it to the hook. Meanwhile it sends the hook forecasts, and an
// alive line with each beat of the server. ctx ends when the server stops.
func (c *conn) decide(ctx context.Context, h Hello) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watching sync.WaitGroup
	watching.Go(func() { cancel(c.watch()) })
	verdict, err := c.ask(ctx, h, func(a wire.Answer) {
		if failed := c.write(a); failed != nil {
			cancel(failed)
			c.abandon() // part of a line may be out: nothing can follow it
		}
	})
	if err == nil {
		c.deliver(verdict)
	} else {
		if ctx.Err() == nil {
			c.log.WithError(err).Errorf("the gate cannot decide for %s, which will ask again", c.name)
			sleep(ctx, c.server.pause)
		}
		c.log.WithError(context.Cause(ctx)).Debugf("%s stopped waiting in the gate without a decision", c.name)
	}
	c.endRead()
	watching.Wait()
}

// ask calls the backend, and returns its panic as an error. Until the backend returns, it sends the forecasts and alive
// lines. send is called from two goroutines, and does not mix its lines, because writes to a connection are atomic.
func (c *conn) ask(ctx context.Context, h Hello, send func(wire.Answer)) (v Verdict, err error) {
	asking, asked := context.WithCancel(ctx)
	var alive sync.WaitGroup
	alive.Go(func() { c.sendAlive(asking, send) })
	defer alive.Wait() // nothing follows the verdict
	defer asked()
	sendForecast := func(leaveAt time.Time, place int, pace time.Duration) {
		send(wire.Answer{Kind: wire.Forecast, LeaveAt: leaveAt, Place: place, Pace: pace})
	}
	err = c.server.caught(func() (err error) {
		v, err = c.server.backend.Wait(ctx, h, sendForecast)
		return err
	})
	return v, err
}

// sendAlive sends an alive line with each beat of the server until ctx ends.
func (c *conn) sendAlive(ctx context.Context, send func(wire.Answer)) {
	c.server.waiting.Add(1)
	defer c.server.waiting.Add(-1)
	for {
		select {
		case <-*c.server.beat.Load():
			send(wire.Answer{Kind: wire.Alive})
		case <-ctx.Done():
			return
		}
	}
}

func (c *conn) deliver(v Verdict) {
	err := c.write(v.answer())
	if err == nil {
		return
	}
	c.log.WithError(err).WithFields(logrus.Fields{"go": v.Go, "reason": v.Reason}).
		Infof("%s went away before its verdict %s: the pod does not start until the next attempt", c.name, v.Reason)
}
