//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// chaosPods bounds the pods at a time: what is tested is not how much a node bears.
const chaosPods = 30

// chaos does one thing after the other to a node, as a seed has it.
type chaos struct {
	t         *testing.T
	d         *daemon
	namespace string
	random    *rand.Rand
	made      int
	living    map[string]int // replicas of the Deployments, by name
	crashing  []string       // those of them that never get ready
	done      []string       // what was done, for the log
	// containerdKilled is how often it was.
	containerdKilled int
}

// A node on which pods come, go and crash while the daemon, kubelet and containerd
// are killed in turn: at the end all that should run runs, and nothing is left of
// the rest. CHAOS_SEED and CHAOS_MINUTES make it another one, or longer.
func TestChaos(t *testing.T) {
	seed, minutes := chaosNumber(t, "CHAOS_SEED", 1), chaosNumber(t, "CHAOS_MINUTES", 1)
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 3}}}")
	ns := namespace(t)
	c := &chaos{t: t, d: d, namespace: ns, random: rand.New(rand.NewPCG(seed, 0)), living: map[string]int{}}
	before := leftovers(t, d)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d did:\n%s", seed, strings.Join(c.done, "\n"))
		}
	})
	for end := time.Now().Add(time.Duration(minutes) * time.Minute); time.Now().Before(end); {
		c.step()
		after(t.Context(), time.Duration(c.random.IntN(2000))*time.Millisecond)
	}
	for _, name := range c.crashing {
		c.remove(name)
	}
	eventually(t, "all that should run runs", c.settled)
	d.idle(t)
	kept := len(c.living)
	for name := range c.living {
		c.remove(name)
	}
	eventually(t, "all pods are gone", func() bool { return len(pods(t, ns)) == 0 })
	eventually(t, "no hook and no runc is left", func() bool { return len(hooks(t)) == 0 })
	s := d.status(t)
	assert.Empty(t, s.Waiting)
	assert.Empty(t, s.Starting)
	assert.Zero(t, s.Gate.Waiters)
	var now map[string]int
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("left: %v, before: %v", now, before)
		}
	})
	// A containerd that is killed while it makes or removes sandboxes forgets some, with
	// their shims, mounts and cgroups, with this daemon or without.
	forgotten := 4 * c.containerdKilled
	eventually(t, "nothing is left of it but what a killed containerd forgot", func() bool {
		now = leftovers(t, d)
		return now["processes"] <= before["processes"]+c.containerdKilled && now["goroutines"] <= before["goroutines"]+5 &&
			now["mounts"] <= before["mounts"]+forgotten && now["cgroups"] <= before["cgroups"]+forgotten
	})
	assert.LessOrEqual(t, now["shims"], before["shims"]+c.containerdKilled, "shims that containerd has forgotten")
	assert.LessOrEqual(t, now["MiB"], before["MiB"]+16, "memory of the daemon")
	figure(t, "seed %d, %d min: %d things done, %d Deployments ran at the end; left then %v, before %v", seed, minutes, len(c.done), kept, now, before)
}

func chaosNumber(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(value, 10, 32)
	require.NoError(t, err, variable)
	return n
}

// step does the next thing.
func (c *chaos) step() {
	c.t.Helper()
	switch n := c.random.IntN(20); {
	case n < 9:
		c.create()
	case n < 13:
		c.deleteSome()
	case n < 16:
		c.say("the daemon is killed")
		require.NoError(c.t, c.d.Kill(c.t.Context()))
		after(c.t.Context(), time.Duration(c.random.IntN(3000))*time.Millisecond)
		require.NoError(c.t, c.d.Start(c.t.Context()))
	case n < 18:
		c.say("kubelet is killed")
		require.NoError(c.t, node.Kubelet.Kill(c.t.Context()))
		require.NoError(c.t, node.Kubelet.Start(c.t.Context()))
	default:
		c.say("containerd is killed")
		c.containerdKilled++
		require.NoError(c.t, node.Containerd.Kill(c.t.Context()))
		require.NoError(c.t, node.Containerd.Start(c.t.Context()))
	}
}

func (c *chaos) say(format string, args ...any) {
	c.done = append(c.done, time.Now().Format("15:04:05.0 ")+fmt.Sprintf(format, args...))
}

// create makes a Deployment whose pods get ready, or crash.
func (c *chaos) create() {
	replicas := 1 + c.random.IntN(4)
	total := replicas
	for _, n := range c.living {
		total += n
	}
	if total > chaosPods {
		c.deleteSome()
		return
	}
	c.made++
	name := fmt.Sprintf("chaos-%d", c.made)
	spec := herdPod(0.1 + c.random.Float64()/2)
	if c.random.IntN(5) == 0 {
		crashing(&spec)
		c.crashing = append(c.crashing, name)
	}
	c.living[name] = replicas
	c.say("%s with %d pods; all crash: %t", name, replicas, slices.Contains(c.crashing, name))
	deploy(c.t, c.namespace, name, int32(replicas), spec)
}

// deleteSome deletes one Deployment.
func (c *chaos) deleteSome() {
	names := slices.Sorted(maps.Keys(c.living))
	if len(names) > 0 {
		c.remove(names[c.random.IntN(len(names))])
	}
}

func (c *chaos) remove(name string) {
	if c.living[name] == 0 {
		return
	}
	c.say("%s is deleted", name)
	background := metav1.DeletePropagationBackground
	require.NoError(c.t, node.Client().AppsV1().Deployments(c.namespace).Delete(context.Background(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
	delete(c.living, name)
}

// settled tells whether the pods of the Deployments, and no others, are ready.
func (c *chaos) settled() bool {
	want := 0
	for _, n := range c.living {
		want += n
	}
	all := pods(c.t, c.namespace)
	for _, p := range all {
		if !condition(p, corev1.PodReady) {
			return false
		}
	}
	return len(all) == want
}

// leftovers counts what must not grow.
func leftovers(t *testing.T, d *daemon) map[string]int {
	t.Helper()
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", node.Containerd.PID()))
	require.NoError(t, err)
	processes, shims := 0, 0
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !ofPod(pid) {
			continue
		}
		// containerd leaves behind the shim of a sandbox that it was making when it was
		// killed, without a process under it.
		name, err := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		if err == nil && strings.HasPrefix(string(name), "containerd-shim") {
			shims++
		} else {
			processes++
		}
	}
	cgroups := 0
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} { // of version 1, and 2
		require.NoError(t, filepath.WalkDir(filepath.Join(root, node.Cgroup, "kubepods"), func(_ string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				cgroups++
			}
			return nil // one may go meanwhile
		}))
	}
	return map[string]int{
		"cgroups": cgroups, "processes": processes, "shims": shims, "mounts": strings.Count(string(mounts), "\n"),
		"goroutines": int(d.metric(t, "go_goroutines")), "MiB": int(d.metric(t, "process_resident_memory_bytes")) >> 20,
	}
}
