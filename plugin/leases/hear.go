package leases

import (
	"context"
	"time"
)

// tell passes on what the watcher has to say.
func (c *Claimer) tell(ctx context.Context, n news) {
	select {
	case c.news <- n:
	case <-ctx.Done():
	}
}

// heard takes over what the watcher has to say, and all else that it has said by now. It
// tells whether there is anything to decide.
func (c *Claimer) heard(now time.Time, n news) (decide bool) {
	for {
		decide = c.takeIn(now, n) || decide
		select {
		case n = <-c.news:
		default:
			return decide
		}
	}
}

func (c *Claimer) takeIn(now time.Time, n news) (decide bool) {
	p := c.planner
	if n.err != nil {
		p.health.reads.fails(now, n.err)
		return true
	}
	decide = p.health.fault() != nil
	switch {
	case n.list != nil:
		p.listed(now, n.list, n.version)
		decide = true
	case n.change != nil:
		decide = p.saw(now, *n.change, n.gone) || decide
	}
	p.health.contact()
	return decide
}

// watching is the watch of the slots, which runs while somebody needs one.
type watching struct {
	watcher watcher
	until   time.Time
	cancel  context.CancelFunc // nil: it does not run
	done    chan struct{}
}

func (w *watching) need(ctx context.Context, now time.Time, p *planner) {
	switch {
	case p.active():
		w.until = now.Add(watchOn)
		if w.cancel == nil {
			w.start(ctx)
		}
	case w.cancel != nil && now.After(w.until):
		w.stop()
		p.known = false
		p.health = health{}
	}
}

// again ends the watch, for need to begin one that lists all anew.
func (c *Claimer) again(w *watching) {
	c.planner.relist, c.planner.known = false, false
	w.stop()
	for {
		select {
		case <-c.news: // of what was before
		default:
			c.options.Log.Warn(storeWentBack)
			return
		}
	}
}

func (w *watching) start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	done := make(chan struct{})
	w.done = done
	go func() {
		defer close(done)
		w.watcher.run(ctx)
	}()
}

func (w *watching) stop() {
	if w.cancel != nil {
		w.cancel()
		<-w.done
		w.cancel = nil
	}
}
