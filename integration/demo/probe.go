package demo

import (
	"context"
	"time"
)

// How often a pod's output is read, and the runtime is asked whether the pod's process lives.
const (
	lookEvery = 100 * time.Millisecond
	askEvery  = time.Second
)

// life is one process of a pod.
type life struct {
	k         *kubelet
	i         int
	container container
	returned  time.Time // when the start returned; the start, if the process has not logged it
	began     bool
	ready     bool
	failures  int // consecutive failures of the liveness probe
}

// watch follows a started process until it has ended or ctx ends. It is also the liveness probe,
// which has its own period: it stops a process that fails the probe too often.
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

// unhealthy is one probe. It reports whether this was the last allowed failure.
func (l *life) unhealthy(now time.Time) bool {
	if l.ready || now.Sub(l.returned) < probeDelay {
		l.failures = 0
		return false
	}
	l.failures++
	return l.failures >= probeFailures
}

// look reads the new output of the process.
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

// end records the process's end, after its last output.
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
