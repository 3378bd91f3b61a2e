package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

const (
	// busyWindow is how long the demo watches the machine before the herd starts.
	busyWindow = time.Second
	// muchBusy is the share of the CPUs' time from which other work spoils the figures.
	muchBusy = 0.15
)

// cpuTimes is the CPU time since boot of all CPUs together, in seconds.
type cpuTimes struct{ busy, all float64 }

func readCPUTimes() (cpuTimes, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return cpuTimes{}, err
	}
	stat, err := fs.Stat()
	if err != nil {
		return cpuTimes{}, fmt.Errorf("reading what the CPUs do: %w", err)
	}
	t := stat.CPUTotal
	busy := t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ + t.Steal
	return cpuTimes{busy: busy, all: busy + t.Idle + t.Iowait}, nil
}

// busyShare returns the present share, 0 to 1, of the CPUs' time that other work takes.
func busyShare(ctx context.Context) (float64, error) {
	before, err := readCPUTimes()
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, busyWindow); err != nil {
		return 0, err
	}
	after, err := readCPUTimes()
	if err != nil {
		return 0, err
	}
	return after.otherWorkSince(before, 0), nil
}

// otherWorkSince returns the share of the CPUs' time that was not spent on the herd, which burned
// burned. It is 0 if no time has passed.
func (t cpuTimes) otherWorkSince(before cpuTimes, burned time.Duration) float64 {
	all := t.all - before.all
	if all <= 0 {
		return 0
	}
	return max(0, t.busy-before.busy-burned.Seconds()) / all
}
