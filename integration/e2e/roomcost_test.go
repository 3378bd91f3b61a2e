//go:build e2e && full

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// Bounds of the cost of a pod that waits in the room: CPU-seconds of kubelet, containerd, the
// daemon and the waiting process together, from the pod's creation to the end of the wait, and
// bytes of memory of its process.
const (
	roomWaits   = 150 * time.Second
	roomCPU     = 0.5
	roomPSS     = 2 * mib
	roomIdleFor = 30 * time.Second
)

// 60 pods that wait in the room for two and a half minutes cost less than 0.5 CPU-seconds each,
// including the creation of their networks, and less than 2 MiB. No pod waits in the gate, whose
// deadlines are sooner.
func TestWaitingInTheRoomCostsLittle(t *testing.T) {
	const count = 60
	d := startDaemonWithRoom(t, "--gate", "never")
	ns := namespace(t)
	parts := []*lab.Service{node.Kubelet, node.Containerd, d.Service}
	var before, filled float64
	var began time.Time
	idle := 0.0
	slow, order, room := fillRoom(t, d, ns, count, func() {
		quiet := cpuOf(t, parts)
		after(t.Context(), roomIdleFor)
		before, began = cpuOf(t, parts), time.Now()
		idle = (before - quiet) / roomIdleFor.Seconds()
		deploy(t, ns, "herd", count, herdPod(0.1))
	}, nil)
	filled = cpuOf(t, parts)
	filling := time.Since(began)
	after(t.Context(), roomWaits-filling)
	used, took := cpuOf(t, parts)-before, time.Since(began)
	waiting := used - (filled - before) - idle*(took-filling).Seconds()
	assert.Equal(t, order, d.waitingNames(t), "the order of the waiting pods, which all still wait")
	assert.GreaterOrEqual(t, d.status(t).Room.Waiters, room, "pods in the room")
	var pss uint64
	all := roomProcesses(t)
	require.GreaterOrEqual(t, len(all), room)
	for _, p := range all {
		memory, err := p.ProcSMapsRollup()
		require.NoError(t, err)
		pss += memory.Pss
	}
	each := (used - idle*took.Seconds()) / count
	figure(t, "%d pods waited for %.0f s, %d of them in the room: %.2f CPU-seconds a pod more than the idle node (%.3f CPUs), %.3f of them after all waited; %.2f MiB PSS each of %d processes",
		count, took.Seconds(), room, each, idle, waiting/count, float64(pss)/float64(len(all))/mib, len(all))
	assert.Less(t, each, roomCPU, "CPU-seconds a pod")
	assert.Less(t, float64(pss)/float64(len(all)), float64(roomPSS), "bytes of a process")
	slow.release(t)
	polled(t, time.Second, "all pods are ready", func() bool { return allReady(t, ns, count+roomLimit) })
}

// roomProcesses returns the processes that wait in the room of the node.
func roomProcesses(t *testing.T) (waiting procfs.Procs) {
	t.Helper()
	all, err := procfs.AllProcs()
	require.NoError(t, err)
	for _, p := range all {
		args, err := p.CmdLine()
		if err != nil || len(args) == 0 || filepath.Base(args[0]) != "pacemaker-cni" && args[0] != "/proc/self/exe" {
			continue // another program, or gone
		}
		if cgroup, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/cgroup"); err == nil && strings.Contains(string(cgroup), node.Cgroup) {
			waiting = append(waiting, p)
		}
	}
	return waiting
}

// cpuOf returns the CPU-seconds of services, of their ended children, and of the processes that
// wait in the room.
func cpuOf(t *testing.T, services []*lab.Service) (sum float64) {
	t.Helper()
	all := roomProcesses(t)
	for _, s := range services {
		p, err := procfs.NewProc(s.PID())
		require.NoError(t, err)
		all = append(all, p)
	}
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil {
			continue // the process has ended, and its parent has its time
		}
		sum += stat.CPUTime() + float64(stat.CUTime+stat.CSTime)/100
	}
	return sum
}
