//go:build e2e && record

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// herdKind is a number of pods of one kind in a recorded herd. The fields are those of the
// simulation's recordings.
type herdKind struct {
	Name       string
	Count      int32
	CPUSeconds float64
	Wait       float64 `json:",omitempty"` // idle seconds before it burns
	CPULimit   float64 `json:",omitempty"` // cores
	ServeCores float64 `json:",omitempty"` // cores used once ready
	Liveness   bool    `json:",omitempty"`
}

func (k herdKind) pod() corev1.PodSpec {
	spec := herdPod(k.CPUSeconds)
	if k.Liveness {
		withLiveness(&spec)
	}
	c := &spec.Containers[0]
	c.Args = append(c.Args, "--wait", fmt.Sprintf("%gs", k.Wait), "--serve-cores", fmt.Sprint(k.ServeCores))
	if k.CPULimit > 0 {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(1000*k.CPULimit), resource.DecimalSI)}
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
	}
	return spec
}

// recording is the file that throttle/internal/nodesim reads. Times are seconds since the herd was
// created, and counters are seconds since the same moment.
type recording struct {
	Name, Kernel string
	Cores        int
	Limit        int // starts at a time; 0: unpaced
	Running      []herdKind
	Herd         []herdKind
	Pods         []recordedPod
	Samples      []recordedSample
}

type recordedPod struct {
	Kind                            string
	Created, Started, Served, Ready float64
	Restarts                        int32
}

type recordedSample struct {
	At, Busy, Idle, IOWait, CPUSome, IOSome, IOFull float64
	Starting                                        int
}

// TestRecord records herds for the simulation of a node. It checks nothing: it writes the files
// that the simulation is checked against. It needs a machine without other work.
func TestRecord(t *testing.T) {
	standard := []herdKind{{Name: "herd", Count: herdPods, CPUSeconds: herdCPUSeconds, Liveness: true}}
	unkilled := []herdKind{{Name: "herd", Count: herdPods, CPUSeconds: herdCPUSeconds}}
	running := []herdKind{{Name: "steady", Count: 2, ServeCores: 0.25}}
	mixed := []herdKind{
		{Name: "sleeper", Count: 8, CPUSeconds: 0.2, Wait: 12},
		{Name: "limited", Count: 4, CPUSeconds: 2, CPULimit: 0.25},
		{Name: "burner", Count: 8, CPUSeconds: 3},
	}
	for _, r := range []recording{
		{Name: "standard-2", Limit: 2, Herd: standard},
		{Name: "standard-unpaced", Herd: unkilled},
		{Name: "mixed-4", Limit: 4, Running: running, Herd: mixed},
		{Name: "standard-3", Limit: 3, Herd: standard},
		{Name: "standard-4", Limit: 4, Herd: standard},
		{Name: "standard-6", Limit: 6, Herd: standard},
		{Name: "mixed-unpaced", Running: running, Herd: mixed},
		{Name: "standard-1", Limit: 1, Herd: standard},
	} {
		t.Run(r.Name, func(t *testing.T) { record(t, r) })
	}
}

func record(t *testing.T, r recording) {
	r.Cores = runtime.NumCPU()
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	require.NoError(t, err)
	r.Kernel = string(kernel[:len(kernel)-1])
	steady := namespace(t)
	for _, k := range r.Running {
		deploy(t, steady, k.Name, k.Count, k.pod())
	}
	eventually(t, "the running pods are ready", func() bool { return allReady(t, steady, pods32(r.Running)) })
	if r.Limit > 0 {
		d := startDaemon(t)
		d.configure(t, fmt.Sprintf("{throttleConfig: {maxConcurrent: {value: %d}}}", r.Limit))
	}
	after(t.Context(), 3*time.Second)

	herd := namespace(t)
	begin := time.Now()
	stop := sampling(t, &r, begin)
	for _, k := range r.Herd {
		deploy(t, herd, k.Name, k.Count, k.pod())
	}
	eventually(t, "all pods are ready", func() bool { return allReady(t, herd, pods32(r.Herd)) })
	stop()
	for _, l := range lives(t, herd) {
		r.Pods = append(r.Pods, recordedPod{
			Kind:    l.pod.Labels["app"],
			Created: since(begin, l.created), Started: since(begin, l.started),
			Served: since(begin, l.served), Ready: since(begin, l.ready), Restarts: restarts(l.pod),
		})
		t.Logf("%+v", r.Pods[len(r.Pods)-1])
	}
	for i := range r.Samples {
		r.Samples[i].Starting = r.startingAt(r.Samples[i].At)
	}
	r.write(t)
}

// millis rounds seconds to the resolution of a recording.
func millis(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

func since(begin, at time.Time) float64 { return millis(at.Sub(begin).Seconds()) }

func pods32(kinds []herdKind) (n int) {
	for _, k := range kinds {
		n += int(k.Count)
	}
	return n
}

func (r *recording) startingAt(at float64) (n int) {
	for _, p := range r.Pods {
		if p.Started <= at && at < p.Ready {
			n++
		}
	}
	return n
}

func (r *recording) write(t *testing.T) {
	t.Helper()
	dir := repository("throttle", "internal", "nodesim", "testdata")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	data, err := json.Marshal(r)
	require.NoError(t, err)
	data = bytes.ReplaceAll(append(data, '\n'), []byte("},{"), []byte("},\n{"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, r.Name+".json"), data, 0o644))
	last := 0.0
	for _, p := range r.Pods {
		last = max(last, p.Ready)
	}
	figure(t, "%d pods, limit %d: all ready after %.1f s", len(r.Pods), r.Limit, last)
}

// sampling reads the node's counters every 250 ms until stop is called.
func sampling(t *testing.T, r *recording, begin time.Time) (stop func()) {
	t.Helper()
	fs, err := procfs.NewDefaultFS()
	require.NoError(t, err)
	first := readCounters(t, fs)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			s := readCounters(t, fs)
			r.Samples = append(r.Samples, recordedSample{
				At: since(begin, time.Now()), Busy: millis(s.Busy - first.Busy), Idle: millis(s.Idle - first.Idle), IOWait: millis(s.IOWait - first.IOWait),
				CPUSome: millis(s.CPUSome - first.CPUSome), IOSome: millis(s.IOSome - first.IOSome), IOFull: millis(s.IOFull - first.IOFull),
			})
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(quit); <-done }
}

func readCounters(t *testing.T, fs procfs.FS) (s recordedSample) {
	t.Helper()
	stat, err := fs.Stat()
	if err != nil {
		t.Error(err)
		return s
	}
	c := stat.CPUTotal
	s.Busy = c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal
	s.Idle, s.IOWait = c.Idle, c.Iowait
	cpu, errCPU := fs.PSIStatsForResource("cpu")
	io, errIO := fs.PSIStatsForResource("io")
	if errCPU != nil || errIO != nil {
		t.Error(errCPU, errIO)
		return s
	}
	const microsecond = 1e-6
	s.CPUSome = float64(cpu.Some.Total) * microsecond
	s.IOSome, s.IOFull = float64(io.Some.Total)*microsecond, float64(io.Full.Total)*microsecond
	return s
}
