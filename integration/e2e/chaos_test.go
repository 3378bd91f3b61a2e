//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// chaosPods bounds the number of pods, because the scenario does not test how many a node bears.
// chaosSeed is the seed if none is set: a run kills each part several times, whatever the day.
const (
	chaosPods = 30
	chaosSeed = 20261126
)

// chaos runs random steps on a node, in an order that a seed determines.
type chaos struct {
	t         *testing.T
	d         *daemon
	namespace string
	random    *rand.Rand
	spares    bool // no longer kills the daemon
	made      int
	living    map[string]int       // replicas of the Deployments, by name
	crashing  []string             // Deployments whose pods never get ready
	done      []string             // what was done, for the log
	killed    map[string]int       // number of kills by part
	removed   map[string]time.Time // by Deployment
	outages   []outage
	restarted []time.Time // restarts of kubelet
	follower  *follower
}

// Pods come, go and crash while the daemon, kubelet and containerd are killed in turn: the starts
// stay within the limit, every pod that should run runs at the end, and nothing else is left. The
// daemon is not killed in the last third of the time, so that a leak in it shows. CHAOS_SEED and
// CHAOS_MINUTES set the seed and the length; `make chaos` has another seed every day.
func TestChaos(t *testing.T) {
	seed, minutes := chaosNumber(t, "CHAOS_SEED", chaosSeed), chaosNumber(t, "CHAOS_MINUTES", 1)
	t.Logf("repeat with: make chaos SEED=%d MINUTES=%d", seed, minutes)
	d := startDaemon(t)
	// Slots are not lent: with loans the limit would not hold while kubelet is away. By startTimeout
	// some pods have places in the gate before any start has ended; the others are refused. The pods
	// that crash have no probe: on a slow machine they crash after more than 5 s, the default of settleTime.
	d.configure(t, fmt.Sprintf("{startTimeout: 45s, settleTime: 40s, throttleConfig: {maxConcurrent: {value: %d}, noProgressAfter: 0s}}", chaosLimit))
	ns := namespace(t)
	c := &chaos{
		t: t, d: d, namespace: ns, random: rand.New(rand.NewPCG(seed, 0)),
		living: map[string]int{}, killed: map[string]int{}, removed: map[string]time.Time{}, follower: follow(t, ns),
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d did:\n%s", seed, strings.Join(c.done, "\n"))
		}
	})
	before, fresh := remaining(t, d), d.fresh(t)
	whole := time.Duration(minutes) * time.Minute
	c.runSteps(whole * 2 / 3)
	c.spares = true
	c.runSteps(whole / 3)

	for _, name := range c.crashing {
		c.remove(name)
	}
	eventually(t, "every pod that should run runs", c.settled)
	d.idle(t)
	c.assertLimit()
	kept := len(c.living)
	for name := range c.living {
		c.remove(name)
	}
	eventually(t, "all pods are gone", func() bool { return len(pods(t, ns)) == 0 })
	eventually(t, "slots, queue and gate are empty", func() bool {
		s := d.status(t)
		return len(s.Waiting) == 0 && len(s.Starting) == 0 && s.Gate.Waiters == 0
	})
	forgotten := d.assertNothingLeft(t, before)
	now := d.assertNoHeavier(t, fresh)
	figure(t, "seed %d, %d min: %d steps, killed %v, %d Deployments ran at the end; the daemon: %s, new %s; forgotten by containerd: %v",
		seed, minutes, len(c.done), c.killed, kept, now, fresh, forgotten)
}

// runSteps runs steps for a time.
func (c *chaos) runSteps(long time.Duration) {
	c.t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); {
		c.step()
		after(c.t.Context(), time.Duration(c.random.IntN(2000))*time.Millisecond)
	}
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

// step runs the next step.
func (c *chaos) step() {
	c.t.Helper()
	switch n := c.random.IntN(20); {
	case n < 9, c.spares && n >= 13 && n < 16:
		c.create()
	case n < 13:
		c.deleteSome()
	case n < 16:
		c.kill("the daemon", c.d.Service, time.Duration(c.random.IntN(3000))*time.Millisecond)
	case n < 18:
		c.kill("kubelet", node.Kubelet, 0)
	default:
		c.kill("containerd", node.Containerd, 0)
	}
}

// kill kills a part of the node and starts it again after a time.
func (c *chaos) kill(what string, part *lab.Service, away time.Duration) {
	c.t.Helper()
	c.say("kill %s", what)
	c.killed[what]++
	from := time.Now()
	require.NoError(c.t, part.Kill(c.t.Context()))
	after(c.t.Context(), away)
	require.NoError(c.t, part.Start(c.t.Context()))
	if part == node.Kubelet {
		c.restarted = append(c.restarted, from)
	} else {
		c.outages = append(c.outages, outageFrom(c.t, from))
	}
}

func (c *chaos) say(format string, args ...any) {
	c.done = append(c.done, time.Now().Format("15:04:05.0 ")+fmt.Sprintf(format, args...))
}

// create creates a Deployment whose pods get ready, or crash.
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
	c.say("create %s with %d pods; all crash: %t", name, replicas, slices.Contains(c.crashing, name))
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
	c.say("delete %s", name)
	c.removed[name] = time.Now()
	background := metav1.DeletePropagationBackground
	require.NoError(c.t, node.Client().AppsV1().Deployments(c.namespace).Delete(context.Background(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
	delete(c.living, name)
}

// deploymentOf returns the Deployment of a pod.
func deploymentOf(pod string) string { return strings.Join(strings.Split(pod, "-")[:2], "-") }

// settled reports whether the pods of the Deployments are ready and no other pods exist.
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
