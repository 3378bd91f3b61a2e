package demo

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

// show runs and draws the herd, and measures the CPU pressure meanwhile. It returns when all pods
// are ready, when the herd is hopeless, after longest, or when ctx ends. The pods keep running.
func (k *kubelet) show(ctx context.Context, p progress, longest time.Duration) (timeline.Run, error) {
	before, err := readCPUTimes()
	if err != nil {
		return timeline.Run{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var beside sync.WaitGroup
	var pressure []timeline.Pressure
	var noPressure error
	beside.Go(func() { pressure, noPressure = samplePressure(ctx, k.rec.begin, readStalled) })
	beside.Go(func() { p.follow(ctx, k.rec, longest) })
	var end time.Time
	beside.Go(func() {
		defer cancel()
		select {
		case <-k.rec.over:
		case <-ctx.Done():
		}
		end = time.Now()
	})
	err = k.run(ctx)
	cancel()
	beside.Wait()
	after, timesErr := readCPUTimes()
	run := k.rec.finish(end)
	run.OtherWork = after.otherWorkSince(before, k.rec.burned())
	run.Pressure = pressure
	if noPressure != nil {
		run.Pressure, run.NoPressure = nil, noPressure.Error()
	}
	return run, errors.Join(err, timesErr)
}
