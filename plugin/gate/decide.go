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
	var watching sync.WaitGroup
	watching.Go(func() { cancel(c.watch()) })
	var verdict Verdict
	var err error
	turns, decided := latestTurn{turn: make(chan wire.Answer, 1)}, make(chan struct{})
	go func() {
		defer close(decided)
		verdict, err = c.ask(ctx, h, turns.set)
	}()

	if failed := c.tell(turns.turn, decided); failed != nil {
		cancel(failed)
		c.abandon() // part of a line may be out: nothing can follow it
		<-decided
	}
	if err == nil {
		c.deliver(h, verdict)
	} else {
		if ctx.Err() == nil {
			c.log.WithError(err).Errorf("the gate cannot decide for pod %s: its hook will ask again", h.Name)
			sleep(ctx, c.server.pause)
		}
		c.log.WithField("why", context.Cause(ctx)).Debugf("the hook of pod %s left the gate without a verdict", h.Name)
	}
	c.endRead()
	watching.Wait()
}

// tell writes the turns, and an alive line with each beat of the server. It returns after
// decided was closed and the latest turn is written, or when a write fails.
func (c *conn) tell(turns <-chan wire.Answer, decided <-chan struct{}) error {
	alive := c.server.alive
	alive.listening.Add(1)
	defer alive.listening.Add(-1)
	for beat := alive.nextBeat(); ; {
		a := wire.Answer{Kind: wire.Alive}
		select {
		case a = <-turns:
		case <-beat:
			beat = alive.nextBeat()
		case <-decided:
			select {
			case a = <-turns:
				return c.write(a)
			default:
				return nil
			}
		}
		if err := c.write(a); err != nil {
			return err
		}
	}
}

func (c *conn) deliver(h Hello, v Verdict) {
	err := c.write(v.answer())
	if err == nil {
		return
	}
	c.log.WithError(err).WithFields(logrus.Fields{"go": v.Go, "reason": v.Reason}).
		Infof("the hook of pod %s went away before its verdict: its container does not start until the next attempt", h.Name)
}

// latestTurn passes turns from the backend to the goroutine that writes them. The backend
// never waits: a turn that is not written yet is replaced by the next.
type latestTurn struct {
	mu   sync.Mutex       // held while turn is filled
	turn chan wire.Answer // holds at most one
}

func (t *latestTurn) set(leaveAt time.Time, position int, pace time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.turn: // an earlier one that was not written yet
	default:
	}
	t.turn <- wire.Answer{Kind: wire.Turn, LeaveAt: leaveAt, Position: position, Pace: pace}
}
