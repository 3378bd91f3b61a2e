package demo

import (
	"context"
	"time"
)

// How often a pod's output is read, and its runtime is asked whether it lives.
const (
	lookEvery = 100 * time.Millisecond
	askEvery  = time.Second
)

// life is what is known of one process of a pod.
type life struct {
	k         *kubelet
	i         int
	container container
	returned  time.Time // when the start returned; the start where the process has not said its own
	began     bool
	ready     bool
	failures  int // of the liveness probe, in a row
}

// watch follows the process that was started, until it has ended or ctx ends. It
// is the liveness probe too, which comes at its own beat: a process that fails it
// too often is stopped.
func (k *kubelet) watch(ctx context.Context, i int, c container, returned time.Time, probe *time.Ticker) error {
	l := &life{k: k, i: i, container: c, returned: returned}
	look, ask := time.NewTicker(lookEvery), time.NewTicker(askEvery)
	defer look.Stop()
	defer ask.Stop()
	for {
		over, err := false, error(nil)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			err = l.look()
		case <-probe.C:
			if l.unhealthy(time.Now()) {
				over, err = true, l.kill(ctx)
			}
		case <-ask.C:
			over, err = l.ask(ctx)
		}
		if over || err != nil {
			return err
		}
	}
}

// unhealthy is one probe: it says whether it was the last that may fail.
func (l *life) unhealthy(now time.Time) bool {
	if l.ready || now.Sub(l.returned) < probeDelay {
		l.failures = 0
		return false
	}
	l.failures++
	return l.failures >= probeFailures
}

// look takes over what the process has said since.
func (l *life) look() error {
	output, err := l.container.output()
	if err != nil {
		return err
	}
	began, ready := marks(output)
	if !l.began && !began.IsZero() {
		l.began = true
		l.k.rec.began(l.i, began)
	}
	if l.began && !l.ready {
		l.k.rec.used(l.i, l.container.cpu())
	}
	if l.began && !l.ready && !ready.IsZero() {
		l.ready = true
		l.k.rec.becameReady(l.i, ready)
	}
	return nil
}

// ask asks the runtime whether the process has ended by itself.
func (l *life) ask(ctx context.Context) (over bool, err error) {
	at, exited, err := l.container.exited(ctx)
	if err != nil || !exited {
		return false, err
	}
	return true, l.end(at, false)
}

// kill stops the process as kubelet does after its liveness probe has failed.
func (l *life) kill(ctx context.Context) error {
	if err := l.container.stop(ctx); err != nil {
		return err
	}
	at, exited, err := l.container.exited(ctx)
	if err != nil {
		return err
	}
	if !exited {
		at = time.Now()
	}
	return l.end(at, true)
}

// end records the process's end, after the last of its output.
func (l *life) end(at time.Time, killed bool) error {
	if err := l.look(); err != nil {
		return err
	}
	if !l.began {
		l.k.rec.began(l.i, l.returned)
	}
	l.k.rec.ended(l.i, at, killed)
	return nil
}
