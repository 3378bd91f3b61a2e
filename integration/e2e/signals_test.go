//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// While other work uses up what a limit is about, that limit holds pods back, reports its
// measurement and threshold, and opens when the work ends. By containerd's times no pod starts
// before that.
func TestABusyNodeHoldsPodsBack(t *testing.T) {
	d := startDaemon(t)
	for name, c := range map[string]struct {
		limits string
		busy   func(t *testing.T) (quiet func())
		reason reasons.Reason
		says   string // what `why` says, as a regular expression
	}{
		"cpu":             {`{cpu: {maxLoad: 80, incrementBy: 5}}`, burn, reasons.CPULoad, `cpu (use )?\d+%.* of 80%`},
		"cpu pressure":    {`{pressure: {cpu: {some: "60"}}}`, burn, reasons.Pressure, `pressure\.cpu\.some.* \d+% of 60%`},
		"memory pressure": {`{pressure: {memory: {some: "5"}}}`, thrash, reasons.Pressure, `pressure\.memory\.some.* \d+% of 5%`},
		"io pressure":     {`{pressure: {io: {some: "5"}}}`, writeThrough, reasons.Pressure, `pressure\.io\.some.* \d+% of 5%`},
	} {
		t.Run(name, func(t *testing.T) {
			quiet := c.busy(t)
			d.configure(t, "{throttleConfig: "+c.limits+"}")
			ns := namespace(t)
			eventually(t, "the daemon measures that the node is busy", func() bool { return d.held(t) == c.reason })
			deploy(t, ns, "herd", 4, herdPod(0.1))
			eventually(t, "all pods wait for the node", func() bool { return countReason(d.status(t).Waiting, c.reason) == 4 })
			line := d.why(t, ns, d.status(t).Waiting[0].Name)
			t.Log(line)
			assert.Contains(t, line, string(c.reason))
			assert.Regexp(t, c.says, line)
			over := time.Now()
			quiet()
			eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 4) })
			for _, c := range containers(t, ns) {
				assert.True(t, c.started.After(over), "%s started %s before the node was quiet", c.pod, over.Sub(c.started))
			}
			figure(t, "4 pods held on the busy node, all ready %.1f s after it was quiet again", time.Since(over).Seconds())
			for pod, start := range d.ended(t, ns) {
				assert.Equal(t, reasons.WithinLimits, start.Admission, pod)
			}
			d.idle(t)
		})
	}
}

// held returns the limit that holds back the next start, or nothing.
func (d *daemon) held(t *testing.T) reasons.Reason {
	t.Helper()
	held := d.status(t).HeldBy
	if held == nil {
		return ""
	}
	return held.Reason
}

func countReason(pods []admin.Pod, reason reasons.Reason) (n int) {
	for _, p := range pods {
		if p.Reason == reason {
			n++
		}
	}
	return n
}

// thrash runs a pod that reads more than its memory holds, over and over, until quiet is called or
// the test ends.
func thrash(t *testing.T) (quiet func()) {
	t.Helper()
	ns := namespace(t)
	createPod(t, ns, "thrashes", herdPod(0, func(spec *corev1.PodSpec) {
		c := &spec.Containers[0]
		c.Args = append(c.Args, "--thrash-mib", "64")
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("24Mi")}
	}))
	eventually(t, "a pod thrashes its memory", func() bool { return len(begun(t, ns)) == 1 })
	return func() {
		require.NoError(t, node.Client().CoreV1().Pods(ns).Delete(t.Context(), "thrashes", metav1.DeleteOptions{}))
		eventually(t, "the pod is gone", func() bool { return len(pods(t, ns)) == 0 })
	}
}

// writeThrough writes to the disk and waits for it, again and again, until quiet is called or the
// test ends.
func writeThrough(t *testing.T) (quiet func()) {
	t.Helper()
	const writers = 16
	ctx, cancel := context.WithCancel(context.Background())
	var writing sync.WaitGroup
	for i := range writers {
		file, err := os.OpenFile(filepath.Join(node.Dir, fmt.Sprintf("written-%d", i)), os.O_CREATE|os.O_WRONLY|syscall.O_DSYNC, 0o600)
		require.NoError(t, err)
		writing.Go(func() {
			defer file.Close()
			for page := make([]byte, 4096); ctx.Err() == nil; {
				if _, err := file.WriteAt(page, 0); !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	quiet = func() {
		cancel()
		writing.Wait()
	}
	t.Cleanup(quiet)
	return quiet
}

// burn starts more CPU-bound processes than there are CPUs, until quiet is called or the test ends.
func burn(t *testing.T) (quiet func()) {
	t.Helper()
	processes := 3 * runtime.NumCPU()
	stops := make([]func(), 0, processes)
	for range processes {
		c := exec.Command("/bin/sh", "-c", "while :; do :; done")
		require.NoError(t, c.Start())
		stops = append(stops, func() {
			_ = c.Process.Kill()
			_ = c.Wait() // the error says that it was killed
		})
	}
	quiet = func() {
		for _, stop := range stops {
			stop()
		}
		stops = nil
	}
	t.Cleanup(quiet)
	return quiet
}
