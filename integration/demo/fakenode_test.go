package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

var (
	errRefused = errors.New("pod-pacemaker: waiting to start: Concurrency (2 of 2 starting), 3 ahead")
	errBroken  = errors.New("the runtime is broken")
)

// fakeNode runs pods whose processes take burn to get ready. It records all requests, with the time
// since its creation.
type fakeNode struct {
	begin     time.Time
	burn      time.Duration
	sandboxes []error // answers to the first requests; then nil
	creates   []error
	starts    []error
	dies      time.Duration // lifetime of a process; 0: endless

	mu  sync.Mutex
	log []string // guarded by mu
}

func (n *fakeNode) note(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, fmt.Sprintf("%.0fs %s", time.Since(n.begin).Truncate(time.Second).Seconds(), what))
}

// answer takes the next of the answers.
func (n *fakeNode) answer(answers *[]error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(*answers) == 0 {
		return nil
	}
	err := (*answers)[0]
	*answers = (*answers)[1:]
	return err
}

func (n *fakeNode) runPod(_ context.Context, _, _ string, attempt int) (pod, error) {
	n.note(fmt.Sprintf("sandbox %d", attempt))
	if err := n.answer(&n.sandboxes); err != nil {
		return nil, err
	}
	return fakePod{n}, nil
}

func (n *fakeNode) clear(context.Context) error { return nil }
func (n *fakeNode) close(context.Context) error { return nil }
func (n *fakeNode) startDaemon(_ context.Context, limit int) (func(context.Context) error, error) {
	n.note(fmt.Sprintf("daemon %d", limit))
	return func(context.Context) error { return nil }, nil
}

type fakePod struct{ node *fakeNode }

func (p fakePod) create(_ context.Context, attempt int) (container, error) {
	p.node.note(fmt.Sprintf("create %d", attempt))
	return &fakeContainer{node: p.node}, p.node.answer(&p.node.creates)
}

type fakeContainer struct {
	node           *fakeNode
	began, stopped time.Time
}

func (c *fakeContainer) start(context.Context) error {
	c.node.note("start")
	c.began = time.Now()
	return c.node.answer(&c.node.starts)
}

func (c *fakeContainer) stop(context.Context) error {
	c.node.note("stop")
	c.stopped = time.Now()
	return nil
}

func (c *fakeContainer) exited(context.Context) (time.Time, bool, error) {
	if died := c.began.Add(c.node.dies); c.node.dies > 0 && !time.Now().Before(died) {
		return died, true, nil
	}
	return c.stopped, !c.stopped.IsZero(), nil
}

func (c *fakeContainer) output() (string, error) {
	text := fmt.Sprintf("started %d\n", c.began.UnixNano())
	if at := c.began.Add(c.node.burn); !time.Now().Before(at) {
		text += fmt.Sprintf("ready %d\n", at.UnixNano())
	}
	return text, nil
}

func (c *fakeContainer) cpu() time.Duration { return time.Since(c.began) }
