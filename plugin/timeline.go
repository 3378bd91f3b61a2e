package plugin

import (
	"context"
	"math"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// watchedFor is how long the daemon measures the node's signals for the timeline after a client last asked for it. While a
// pod waits or starts, it measures them in any case.
const watchedFor = 10 * time.Second

// recordTimeline adds a point to the timeline every [admin.TimelineEvery] until ctx ends.
func (d *Daemon) recordTimeline(ctx context.Context) error {
	tick := time.Tick(admin.TimelineEvery)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
		var signals throttle.Signals
		now := time.Now()
		watched := now.Sub(time.Unix(0, d.timelineAsked.Load())) < watchedFor
		if starting, waiting := d.limiter.Busy(now); watched || starting || waiting {
			signals = d.sensors.now()
			now = time.Now()
		}
		d.timeline.Add(newPoint(now, d.limiter.Snapshot(now), signals))
	}
}

// Timeline implements admin.Provider.
func (d *Daemon) Timeline() []admin.Point {
	d.timelineAsked.Store(time.Now().UnixNano())
	return d.timeline.Points()
}

func newPoint(now time.Time, s throttle.Snapshot, signals throttle.Signals) admin.Point {
	value := func(signal throttle.Signal) *float64 {
		if r := signals[signal]; r.Err == nil && !r.To.IsZero() {
			return new(math.Round(10*r.Value) / 10) // more digits only cost bytes
		}
		return nil
	}
	return admin.Point{
		Time: now, Waiting: len(s.Waiting), Starting: admin.SlotsUsed(s.Starting), Slots: s.Limit,
		CPU: value(throttle.SignalCPU), CPUPressure: value(throttle.SignalCPUPressure),
		MemoryPressure: value(throttle.SignalMemoryPressure), IOPressure: value(throttle.SignalIOPressure),
	}
}
