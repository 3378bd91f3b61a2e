//go:build e2e

package e2e

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
)

// reading is the CPU time that the machine had used at a moment, and what the run's
// own cgroup had used of it: control plane, kubelet, containerd, the daemon, and all
// pods, those that were killed included. Both are in seconds.
type reading struct {
	at        time.Time
	busy, own float64
}

func readMachine(t *testing.T) reading {
	t.Helper()
	fs, err := procfs.NewDefaultFS()
	require.NoError(t, err)
	stat, err := fs.Stat()
	require.NoError(t, err)
	own, err := cgroup.Reader{Root: "/sys/fs/cgroup"}.CPUSeconds(node.Cgroup)
	require.NoError(t, err)
	c := stat.CPUTotal
	return reading{time.Now(), c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal, own}
}

// span is what happened on the machine between two readings.
type span struct {
	took     time.Duration
	capacity float64 // CPU-seconds that the machine has in that time
	foreign  float64 // CPU-seconds that went to others than the run
	own      float64 // CPU-seconds that went to the run
}

// since gives what happened on the machine since a reading.
func (r reading) since(t *testing.T) span {
	t.Helper()
	now := readMachine(t)
	took, own := now.at.Sub(r.at), now.own-r.own
	return span{
		took: took, capacity: took.Seconds() * float64(runtime.NumCPU()),
		foreign: max(0, now.busy-r.busy-own), own: own,
	}
}

// share is the part of the machine that others took.
func (s span) share() float64 { return s.foreign / s.capacity }

func (s span) String() string {
	return fmt.Sprintf("in %.1f s other work took %.0f %% of the machine, the run %.0f %%",
		s.took.Seconds(), 100*s.share(), 100*s.own/s.capacity)
}
