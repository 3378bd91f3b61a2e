//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Bounds of what pods may notice of a daemon that gets no CPU.
const (
	// weakRatio and weakTimeouts: so many times what they take otherwise, and two of the
	// runtime's request timeouts in all.
	weakRatio    = 1.5
	weakTimeouts = 2 * 2 * time.Second
	// weakFor is how long the daemon is weak, weakPods how many pods start meanwhile.
	weakFor  = time.Minute
	weakPods = 15
)

// A daemon that is stopped and goes on every 3 s, or that gets 2 % of a CPU, answers the
// runtime too late again and again, which then holds up every pod of the node: exempt pods,
// too. It stays away for longer and longer, so that they hardly notice.
func TestAWeakDaemonMakesNoWeakRuntime(t *testing.T) {
	for name, weaken := range map[string]func(ctx context.Context, t *testing.T, d *daemon){
		"stopped every 3 s": stopAndGo, "2 % of a CPU": starve,
	} {
		t.Run(name, func(t *testing.T) {
			repeated(t, func(t *testing.T) string {
				d, ns := startDaemon(t), namespace(t)
				d.configure(t, fmt.Sprintf("{exemptions: {namespaces: [%s]}, throttleConfig: {maxConcurrent: {value: 2}}}", ns))
				podsEvery(t, ns, 0) // what is done once
				usual := podsEvery(t, ns, 0)
				ctx, cancel := context.WithCancel(t.Context())
				var weakened sync.WaitGroup
				weakened.Go(func() { weaken(ctx, t, d) })
				weak := podsEvery(t, ns, weakFor/weakPods)
				cancel()
				weakened.Wait()
				figure(t, "%d exempt pods run after %.1f s, one after the other; beside a weak daemon (%s) after %.1f s, in times of that %.2f",
					weakPods, usual.Seconds(), name, weak.Seconds(), weak.Seconds()/usual.Seconds())
				eventually(t, "the daemon paces again, or says when", func() bool { _, err := d.admin.Status(t.Context()); return err == nil })
				return above("seconds beside a weak daemon", weak.Seconds(), weakRatio*usual.Seconds()+weakTimeouts.Seconds())
			})
		})
	}
}

// podsEvery makes pods, one in so much time, and gives how long they took in all until
// their processes ran.
func podsEvery(t *testing.T, ns string, every time.Duration) (sum time.Duration) {
	t.Helper()
	for range weakPods {
		began := time.Now()
		name := "exempt-" + unique()
		createPod(t, ns, name, herdPod(0, withoutProbes))
		watched(t, "its process runs", func() bool { return len(runningContainers(t, ns, name)) == 1 })
		sum += time.Since(began)
		after(t.Context(), every-time.Since(began))
	}
	return sum
}

// stopAndGo has the daemon stand still for 3 s, and go on for 3 s, until ctx ends.
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

// starve leaves the daemon 2 % of a CPU until ctx ends.
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

// cpuTree gives the root of the cgroup tree that shares out CPU time, and the cgroup of a
// process in it, of which /proc has that.
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
