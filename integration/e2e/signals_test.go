//go:build e2e

package e2e

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// While other work takes all CPUs, a limit on what the node measures holds pods back,
// says what it measured against what, and opens when the work is over.
func TestABusyNodeHoldsPodsBack(t *testing.T) {
	for name, c := range map[string]struct {
		limits string
		reason throttle.Reason
		says   string // what `why` says, as a regular expression
	}{
		"cpu":      {`{cpu: {maxLoad: 80, incrementBy: 5}}`, throttle.CPULoad, `cpu (use )?\d+%.* of 80%`},
		"pressure": {`{pressure: {cpu: {some: "60"}}}`, throttle.Pressure, `cpu pressure.* \d+% of 60%`},
	} {
		t.Run(name, func(t *testing.T) {
			d := startDaemon(t)
			d.configure(t, "{throttleConfig: "+c.limits+"}")
			quiet := burn(t, 3*runtime.NumCPU())
			ns := namespace(t)
			eventually(t, "the daemon measures that the node is busy", func() bool { return d.held(t) == c.reason })
			deploy(t, ns, "herd", 4, herdPod(0.1))
			eventually(t, "all pods wait for the node", func() bool { return countReason(d.status(t).Waiting, c.reason) == 4 })
			line := d.why(t, ns, d.status(t).Waiting[0].Name)
			t.Log(line)
			assert.Contains(t, line, string(c.reason))
			assert.Regexp(t, c.says, line)
			for _, l := range lives(t, ns) {
				assert.True(t, l.started.IsZero(), "%s started on the busy node", l.pod.Name)
			}
			over := time.Now()
			quiet()
			eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 4) })
			figure(t, "%s: 4 pods held on the busy node, all ready %.1f s after it was quiet again", name, time.Since(over).Seconds())
			for pod, start := range d.ended(t, ns) {
				assert.Equal(t, throttle.WithinLimits, start.Admission, pod)
			}
			d.idle(t)
		})
	}
}

// held is the limit that holds the next start back; empty: none.
func (d *daemon) held(t *testing.T) throttle.Reason {
	t.Helper()
	held := d.status(t).HeldBy
	if held == nil {
		return ""
	}
	return held.Reason
}

func countReason(pods []admin.Pod, reason throttle.Reason) (n int) {
	for _, p := range pods {
		if p.Reason == reason {
			n++
		}
	}
	return n
}

// burn starts so many processes that want a CPU each, until quiet is called or the
// test ends.
func burn(t *testing.T, processes int) (quiet func()) {
	t.Helper()
	stops := make([]func(), 0, processes)
	for range processes {
		c := exec.Command("/bin/sh", "-c", "while :; do :; done")
		require.NoError(t, c.Start())
		stops = append(stops, func() {
			_ = c.Process.Kill()
			_ = c.Wait() // it was killed
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
