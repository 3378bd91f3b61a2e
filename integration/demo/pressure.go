package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

// pressureWindow is the time that one figure of CPU pressure covers.
const pressureWindow = time.Second

// stalled reads for how long, since boot, some task has waited for a CPU.
type stalled func() (time.Duration, error)

// readStalled reads the kernel's counter. It fails on kernels without pressure
// stall information.
func readStalled() (time.Duration, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	stats, err := fs.PSIStatsForResource("cpu")
	if err != nil {
		return 0, err
	}
	if stats.Some == nil {
		return 0, fmt.Errorf("/proc/pressure/cpu has no line \"some\"")
	}
	return time.Duration(stats.Some.Total) * time.Microsecond, nil
}

// samplePressure measures from now until ctx ends. It returns the measurements, with times since
// begin. The error says why this kernel measures nothing.
func samplePressure(ctx context.Context, begin time.Time, read stalled) ([]timeline.Pressure, error) {
	before, err := read()
	if err != nil {
		return nil, err
	}
	var windows []timeline.Pressure
	from := time.Now()
	tick := time.NewTicker(pressureWindow)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
		}
		now, err := read()
		if err != nil {
			return nil, err
		}
		to := time.Now()
		if to.Sub(from) < pressureWindow/10 {
			continue
		}
		windows = append(windows, timeline.Pressure{
			From: from.Sub(begin), To: to.Sub(begin),
			Some: min(1, (now-before).Seconds()/to.Sub(from).Seconds()),
		})
		before, from = now, to
	}
	return windows, nil
}
