package gate

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// decide waits for the backend's verdict on h and sends it to the hook. Meanwhile it
// sends the hook its turns. ctx ends when the server stops.
func (c *conn) decide(ctx context.Context, h Hello) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watching, writing sync.WaitGroup
	watching.Go(func() { cancel(c.watch()) })
	p := newPace(c.server.alive)
	writing.Go(func() {
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
	writing.Wait() // two writers would mix their lines
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

// pace passes turns from the backend to the goroutine that writes them. The backend
// never waits: a turn that is not written yet is replaced by the next.
type pace struct {
	turns chan wire.Answer // holds at most one turn, the latest; closed by end
	alive *pulse

	mu    sync.Mutex // held while turns is filled
	ended bool
}

func newPace(alive *pulse) *pace {
	return &pace{turns: make(chan wire.Answer, 1), alive: alive}
}

func (p *pace) set(leaveAt time.Time, position int, every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	select {
	case <-p.turns: // an earlier one that was not written yet
	default:
	}
	p.turns <- wire.Answer{Kind: wire.Turn, LeaveAt: leaveAt, Position: position, Pace: every}
}

// end lets run return once it has written the latest turn. Call it once.
func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	close(p.turns)
}

// run writes the turns, and an alive line with each beat of alive. It returns after
// end was called and the latest turn is written, or when a write fails.
func (p *pace) run(write func(wire.Answer) error) error {
	p.alive.listening.Add(1)
	defer p.alive.listening.Add(-1)
	beat := p.alive.nextBeat()
	var last wire.Answer
	for {
		a := wire.Answer{Kind: wire.Alive}
		select {
		case turn, more := <-p.turns:
			switch {
			case !more:
				return nil
			case turn == last:
				continue
			}
			a, last = turn, turn
		case <-beat:
			beat = p.alive.nextBeat()
		}
		if err := write(a); err != nil {
			return err
		}
	}
}
