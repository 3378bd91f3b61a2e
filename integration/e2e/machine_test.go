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

// reading is the CPU time that the machine has used, the part of it that the run's cgroup has used,
// with killed pods, and the part of that which no pod used but the services of the run: control
// plane, kubelet, containerd and the daemon. All are in seconds.
type reading struct {
	at                  time.Time
	busy, own, services float64
}

func readMachine(t *testing.T) reading {
	t.Helper()
	fs, err := procfs.NewDefaultFS()
	require.NoError(t, err)
	stat, err := fs.Stat()
	require.NoError(t, err)
	groups := cgroup.Reader{Root: "/sys/fs/cgroup"}
	own, err := groups.CPUSeconds(node.Cgroup)
	require.NoError(t, err)
	services, err := groups.CPUSeconds(node.Cgroup + "/system")
	require.NoError(t, err)
	c := stat.CPUTotal
	return reading{time.Now(), c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal, own, services}
}

// span is the use of the machine between two readings.
type span struct {
	took     time.Duration
	capacity float64 // CPU-seconds of the machine in that time
	foreign  float64 // CPU-seconds used outside the run
	own      float64 // CPU-seconds used by the run
	services float64 // the part of own that the services used
}

// since returns the use of the machine since the reading.
func (r reading) since(t *testing.T) span {
	t.Helper()
	now := readMachine(t)
	took, own := now.at.Sub(r.at), now.own-r.own
	return span{
		took: took, capacity: took.Seconds() * float64(runtime.NumCPU()),
		foreign: max(0, now.busy-r.busy-own), own: own, services: now.services - r.services,
	}
}

// share is the part of the machine that other work took.
func (s span) share() float64 { return s.foreign / s.capacity }

// besidePods is the part of the machine that other work and the services of the run took.
func (s span) besidePods() float64 { return (s.foreign + s.services) / s.capacity }

func (s span) String() string {
	return fmt.Sprintf("in %.1f s other work took %.0f %% of the machine, the node's services %.0f %%, pods %.0f %%",
		s.took.Seconds(), 100*s.share(), 100*s.services/s.capacity, 100*(s.own-s.services)/s.capacity)
}
