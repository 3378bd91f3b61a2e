package gate

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// decide waits for the backend's verdict on h and hands it to the hook, which
// is told of its pace meanwhile. ctx ends when the server stops.
func (c *conn) decide(ctx context.Context, h Hello) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watching, telling sync.WaitGroup
	watching.Go(func() { cancel(c.watch()) })
	p := newPace(&c.server.alive)
	telling.Go(func() {
		if err := p.run(c.write); err != nil {
			cancel(err)
			c.abandon() // part of a line may be out: nothing can follow it
		}
	})

	verdict, err := c.ask(ctx, h, p)
	if err != nil && ctx.Err() == nil {
		c.log.WithError(err).Errorf("the gate cannot decide for pod %s: its hook will ask again", h.Name)
		sleep(ctx, c.server.pause)
	}
	telling.Wait() // two writers would mix their lines
	if err == nil {
		c.deliver(h, verdict)
	} else {
		c.log.WithField("why", context.Cause(ctx)).Debugf("the hook of pod %s left the gate without a verdict", h.Name)
	}
	c.endRead()
	watching.Wait()
}

func (c *conn) deliver(h Hello, v Verdict) {
	err := c.write(v.answer())
	if err == nil {
		return
	}
	c.log.WithError(err).WithFields(logrus.Fields{"go": v.Go, "reason": v.Reason}).
		Infof("the hook of pod %s went away before its verdict: its container does not start until the next attempt", h.Name)
}

// pace hands what the backend tells to the one goroutine that writes, without
// making the backend wait: only the latest counts.
type pace struct {
	wake  chan struct{}
	alive *pulse

	mu    sync.Mutex
	next  wire.Answer // told last
	last  wire.Answer // written last
	ended bool
}

func newPace(alive *pulse) *pace {
	return &pace{wake: make(chan struct{}, 1), alive: alive}
}

func (p *pace) set(leaveAt time.Time, position int, every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.next = wire.Answer{Kind: wire.Turn, LeaveAt: leaveAt, Position: position, Pace: every}
		p.wakeLocked()
	}
}

func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.wakeLocked()
}

func (p *pace) wakeLocked() {
	select {
	case p.wake <- struct{}{}:
	default: // it is already on its way
	}
}

// take returns what is to be written now, Kind zero if nothing, and whether that
// is the last.
func (p *pace) take() (a wire.Answer, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != p.last {
		p.last = p.next
		a = p.next
	}
	return a, p.ended
}

// run writes until the pace ended, and what was told last before that, or until
// a write failed. With each beat of alive it says so.
func (p *pace) run(write func(wire.Answer) error) error {
	p.alive.listening.Add(1)
	defer p.alive.listening.Add(-1)
	beat := p.alive.coming()
	for {
		var a wire.Answer
		last := false
		select {
		case <-p.wake:
			a, last = p.take()
		case <-beat:
			beat = p.alive.coming()
			a = wire.Answer{Kind: wire.Alive}
		}
		if a.Kind != 0 {
			if err := write(a); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}
