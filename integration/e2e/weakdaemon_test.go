//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of the effect on pods of a daemon that gets no CPU.
const (
	// Beside a weak daemon, containerd may wait for weakRatio times as long as pods take otherwise,
	// less that time itself, and for weakTimeouts of the runtime's request timeouts in all.
	weakRatio    = 1.5
	weakTimeouts = 2
	// requestTimeout is how long containerd waits for an answer.
	requestTimeout = 2 * time.Second
	// weakFor is how long the daemon is weak. Meanwhile a pod is created every weakEvery, so that
	// some are under way whenever the daemon stands still.
	weakFor   = time.Minute
	weakEvery = 2 * time.Second
)

// A daemon that stops and continues every 3 s, or gets 2 % of a CPU, answers the runtime too late,
// and stays away from it for longer and longer, so that other pods hardly notice. Each late answer
// holds up every pod of the node, exempt pods too. The same holds if the daemon had kept up for a
// minute before, and while a pod is being stopped. containerd's metrics report how long it waited,
// and how many waits timed out.
func TestAWeakDaemonMakesNoWeakRuntime(t *testing.T) {
	witness := measuredNode(t, "containerd")
	for name, c := range map[string]struct {
		weaken func(ctx context.Context, t *testing.T, d *daemon)
		// stopping adds a pod that is being stopped. No daemon registers before the stop ends.
		stopping bool
	}{
		"stopped every 3 s": {weaken: stopAndGo},
		"2 % of a CPU":      {weaken: starve},
		"stopped every 3 s while a pod is being stopped": {weaken: stopAndGo, stopping: true},
	} {
		t.Run(name, func(t *testing.T) {
			repeated(t, func(t *testing.T) string {
				d, ns := startDaemon(t, "--log-level", "info"), namespace(t)
				d.configure(t, fmt.Sprintf("{exemptions: {namespaces: [%s]}, throttleConfig: {maxConcurrent: {value: 2}}}", ns))
				fresh := waitedFor(t, witness)
				usual := startsFor(t, ns, weakFor+weakEvery)
				slices.Sort(usual)
				median := usual[len(usual)/2]
				var stop slowlyStopped
				if c.stopping {
					stop = stopSlowly(t, d, 2*weakFor)
				}

				before := waitedFor(t, witness)
				require.Greater(t, before.waited, fresh.waited, "containerd waits for every answer")
				ctx, cancel := context.WithCancel(t.Context())
				var weakened sync.WaitGroup
				weakened.Go(func() { c.weaken(ctx, t, d) })
				weak := startsFor(t, ns, weakFor)
				cancel()
				weakened.Wait()
				now := waitedFor(t, witness)
				vain, waited := now.vain-before.vain, now.waited-before.waited
				most := (weakRatio-1)*median.Seconds()*float64(len(weak)) + weakTimeouts*requestTimeout.Seconds()
				figure(t, "an exempt pod runs after %.2f s at the median; of %d beside a weak daemon (%s) the slowest took %.2f s; containerd waited %.1f s in all, %v waits timed out; before, %.2f s for %d pods",
					median.Seconds(), len(weak), name, slices.Max(weak).Seconds(), waited, vain, before.waited-fresh.waited, len(usual))
				if c.stopping {
					if stop.over() {
						return "the stop ended before the daemon was strong again"
					}
					now := int64(0)
					require.NoError(t, node.Client().CoreV1().Pods(stop.slow).Delete(t.Context(), "slow", metav1.DeleteOptions{GracePeriodSeconds: &now}))
				}
				require.LessOrEqual(t, vain, float64(weakTimeouts), "waits of containerd that timed out")
				return above("seconds that containerd waited", waited, most)
			})
		})
	}
}

// measuredNode is onNode for a containerd whose metrics are served at the URL that it returns.
func measuredNode(t *testing.T, containerd string) (metrics string) {
	t.Helper()
	const address = "127.0.0.1:1338"
	onNode(t, containerd, fmt.Sprintf("[metrics]\n  address = %q\n", address))
	forwarded, err := node.Forward(t.Context(), address)
	require.NoError(t, err)
	return "http://" + forwarded + "/v1/metrics"
}

// waits is how many of containerd's requests to an NRI plugin timed out, and for how many seconds
// containerd waited for answers in all.
type waits struct{ vain, waited float64 }

func waitedFor(t *testing.T, metrics string) (w waits) {
	t.Helper()
	for sample, n := range samplesOf(t, metrics, "containerd_nri_plugin_invocations_total{") {
		if strings.Contains(sample, `error="deadline_exceeded"`) {
			w.vain += n
		}
	}
	for _, n := range samplesOf(t, metrics, "containerd_nri_plugin_latency_seconds_sum{") {
		w.waited += n
	}
	return w
}

// startsFor creates a pod every weakEvery for a time, and returns how long each took until its
// process ran.
func startsFor(t *testing.T, ns string, d time.Duration) (took []time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		began := time.Now()
		name := "exempt-" + unique()
		createPod(t, ns, name, herdPod(0, withoutProbes))
		watched(t, "the process of the pod runs", func() bool { return len(runningContainers(t, ns, name)) == 1 })
		took = append(took, time.Since(began))
		t.Logf("%s: %.2f s", name, took[len(took)-1].Seconds())
		after(t.Context(), weakEvery-time.Since(began))
	}
	return took
}

// stopAndGo alternately stops the daemon for 3 s and continues it for 3 s, until ctx ends.
func stopAndGo(ctx context.Context, t *testing.T, d *daemon) {
	for ctx.Err() == nil {
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
			if err := d.Signal(context.WithoutCancel(ctx), sig); err != nil {
				t.Errorf("%v: %v", sig, err)
			}
			after(ctx, 3*time.Second)
		}
	}
}

// starve limits the daemon to 2 % of a CPU until ctx ends.
func starve(ctx context.Context, t *testing.T, d *daemon) {
	const period, quota = 100000, 2000 // in microseconds
	mine, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", d.PID()))
	if err != nil {
		t.Errorf("the daemon's cgroup: %v", err)
		return
	}
	root, home := cpuTree(string(mine))
	weak := filepath.Join(root, "pod-pacemaker-weak-"+unique())
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Errorf("confine the daemon: %v", err)
		}
	}
	if err := os.Mkdir(weak, 0o700); err != nil {
		t.Errorf("confine the daemon: %v", err)
		return
	}
	if _, err := os.Stat(filepath.Join(weak, "cpu.cfs_quota_us")); err == nil {
		write(filepath.Join(weak, "cpu.cfs_period_us"), strconv.Itoa(period))
		write(filepath.Join(weak, "cpu.cfs_quota_us"), strconv.Itoa(quota))
	} else {
		write(filepath.Join(weak, "cpu.max"), fmt.Sprint(quota, " ", period))
	}
	write(filepath.Join(weak, "cgroup.procs"), strconv.Itoa(d.PID()))
	<-ctx.Done()
	write(filepath.Join(home, "cgroup.procs"), strconv.Itoa(d.PID()))
	eventually(t, "the daemon's cgroup is gone", func() bool { return os.Remove(weak) == nil })
}

// cpuTree returns the root of the cgroup tree that shares out CPU time, and the cgroup of a process
// in it. cgroups is the content of the process's /proc file.
func cpuTree(cgroups string) (root, home string) {
	for line := range strings.Lines(cgroups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			if controller == "cpu" {
				return "/sys/fs/cgroup/cpu", filepath.Join("/sys/fs/cgroup/cpu", parts[2])
			}
		}
		if parts[0] == "0" {
			root, home = "/sys/fs/cgroup", filepath.Join("/sys/fs/cgroup", parts[2])
		}
	}
	return root, home
}
