package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

const (
	// busyWindow is how long the machine is watched before the herd starts.
	busyWindow = time.Second
	// muchBusy is the share of the CPUs' time from which on other work spoils
	// the figures.
	muchBusy = 0.15
)

// cpuTimes is what all CPUs together have done since boot, in seconds.
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

// busyShare is how much of the CPUs' time, 0 to 1, other work takes now.
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

// otherWorkSince is the share of the CPUs' time that went to anything but the
// herd, which burned that much. It is 0 when no time has passed.
func (t cpuTimes) otherWorkSince(before cpuTimes, burned time.Duration) float64 {
	all := t.all - before.all
	if all <= 0 {
		return 0
	}
	return max(0, t.busy-before.busy-burned.Seconds()) / all
}
