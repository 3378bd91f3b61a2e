package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// kubelet plays the part of kubelet for one herd.
type kubelet struct {
	node node
	herd Herd
	rec  *recorder
}

// mostFaults is how often in a row the runtime may fail a pod, without refusing it, before the demo
// gives up.
const mostFaults = 4

// run requests all pods at once and keeps them running until ctx ends. It does not remove them. It
// returns the error of a pod that the runtime cannot run.
func (k *kubelet) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range k.herd.Pods {
		group.Go(func() error {
			if err := k.keep(ctx, i); err != nil && ctx.Err() == nil {
				return fmt.Errorf("pod %s: %w", k.herd.podName(i), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// keep runs a pod, and restarts its container, until ctx ends.
func (k *kubelet) keep(ctx context.Context, i int) error {
	var box pod
	uid := runtimetest.NewUID()
	err := k.insist(ctx, i, false, func(try int) (err error) {
		box, err = k.node.runPod(ctx, k.herd.podName(i), uid, try)
		return err
	})
	if err != nil {
		return err
	}
	probe := time.NewTicker(probePeriod)
	defer probe.Stop()
	backOff, faults := time.Duration(0), 0
	for attempt := 0; ; attempt++ {
		c, err := k.start(ctx, i, box, attempt)
		switch {
		case err == nil:
			faults = 0
			err = k.watch(ctx, i, c, time.Now(), probe)
		case errors.Is(err, errStart) && faults < mostFaults:
			// kubelet treats a failed start as an exit.
			faults++
			err = nil
		}
		if err == nil {
			err = pause(ctx, backOff)
		}
		if err != nil {
			return err
		}
		backOff = min(max(2*backOff, firstBackOff), lastBackOff)
	}
}

// errStart is wrapped by the error of a container that was created but did not start.
var errStart = errors.New("the container did not start")

// start creates and starts the pod's container.
func (k *kubelet) start(ctx context.Context, i int, box pod, attempt int) (container, error) {
	var c container
	err := k.insist(ctx, i, true, func(int) (err error) {
		c, err = box.create(ctx, attempt)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", errStart, err)
	}
	return c, nil
}

// insist repeats a request that the runtime refuses, as kubelet does: after 10 to 15 s, and
// immediately after the first refused create of a container.
func (k *kubelet) insist(ctx context.Context, i int, create bool, request func(try int) error) error {
	faults := 0
	for try := 0; ; try++ {
		err := request(try)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case refusal(err):
			k.rec.refused(i)
		default:
			if faults++; faults == mostFaults {
				return err
			}
		}
		if create && try == 0 {
			continue
		}
		if err := pause(ctx, retryInterval+rand.N(retryInterval/2)); err != nil {
			return err
		}
	}
}

// refusal distinguishes the daemon's refusal from a fault of the runtime.
func refusal(err error) bool {
	return strings.Contains(err.Error(), "pod-pacemaker: waiting to start")
}

// pause waits, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
