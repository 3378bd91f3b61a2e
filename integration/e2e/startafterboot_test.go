//go:build e2e && full

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The node agent that the apps of these scenarios need: it is ready this long after its process began, and until then
// each app ends with exit code 1.
const (
	agentTakes = 20 * time.Second
	agentApps  = 12
)

// agentNode is a node with the agent and the apps, which are all ready.
type agentNode struct {
	d         *daemon
	infra, ns string
	mark      latch
}

func newAgentNode(t *testing.T, d *daemon) agentNode {
	t.Helper()
	n := agentNode{d, namespace(t), namespace(t), newLatch(t)}
	daemonSet(t, n.infra, "agent", herdPod(0, sleeping(agentTakes.String()), n.mark.withMark("--marks")))
	eventually(t, "the agent is ready", func() bool { return allReady(t, n.infra, 1) })
	deploy(t, n.ns, "app", agentApps, herdPod(0.1, sleeping("4s"), n.mark.withMark("--fails-without")))
	eventually(t, "all apps are ready", func() bool { return allReady(t, n.ns, agentApps) })
	return n
}

// configure sets the limit, with these entries of startAfter.
func (n agentNode) configure(t *testing.T, startAfter string) {
	t.Helper()
	n.d.configure(t, fmt.Sprintf("{throttleConfig: {maxConcurrent: {value: 2}}, exemptions: {daemonSets: {namespaces: ['*']}}, priority: %s, startAfter: [%s]}", unique(), startAfter))
	n.d.idle(t)
}

// restarts returns the sum of the restart counts of the apps.
func (n agentNode) restarts(t *testing.T) (sum int32) {
	t.Helper()
	for _, p := range pods(t, n.ns) {
		sum += restarts(p)
	}
	return sum
}

// reboots reboots the node, and returns the starts of the apps, when the agent was ready, and how often an app crashed.
// booting does what is special when the node begins to boot, booted when kubelet runs.
func (n agentNode) reboots(t *testing.T, marked bool, booting, booted func()) (begin, ready time.Time, all []life, crashes int32) {
	t.Helper()
	before := n.restarts(t)
	booting()
	shutDown(t, n.d)
	if !marked {
		require.NoError(t, os.Remove(filepath.Join(n.mark.dir, latchFile)))
	}
	begin = time.Now()
	boot(t, n.d)
	booted()
	all = readyAgain(t, n.ns, begin, agentApps)
	logLives(t, begin, all)
	for _, at := range kubeletReady(t, n.infra, begin) {
		ready = at
	}
	require.False(t, ready.IsZero(), "the agent is ready again")
	return begin, ready, all, n.restarts(t) - before - agentApps // the reboot itself counts once for each
}

// assertInOrder checks that no app began before the agent was ready, and none crashed.
func assertInOrder(t *testing.T, begin, ready time.Time, all []life, crashes int32) {
	t.Helper()
	assert.Zero(t, crashes, "apps that ended with exit code 1")
	assert.GreaterOrEqual(t, ready.Sub(begin), agentTakes)
	for _, l := range all {
		assert.False(t, l.started.Before(ready), "%s began %.2f s before the agent was ready", l.pod.Name, ready.Sub(l.started).Seconds())
	}
	assert.LessOrEqual(t, mostStarting(t, all), 2, "pods between the start of their process and ready")
}

// After a reboot, apps that need an agent of their node wait until its DaemonSet is ready. Without startAfter they crash.
// The whole takes no longer than the agent and the herd in turn.
func TestRebootInOrder(t *testing.T) {
	n := newAgentNode(t, startDaemonWith(t, "--kubeconfig", asServiceAccount(t), "--node-name", node.NodeName))
	nothing := func() {}
	n.configure(t, "")
	begin, _, all, crashes := n.reboots(t, true, nothing, nothing) // the apps do not need the agent
	alone := lastReady(all).Sub(begin)
	require.Zero(t, crashes)

	begin, _, all, crashes = n.reboots(t, false, nothing, nothing)
	unordered := lastReady(all).Sub(begin)
	require.Positive(t, crashes, "without startAfter")

	n.configure(t, "{daemonSet: "+n.infra+"/agent, timeout: 1m}")
	begin, ready, all, none := n.reboots(t, false, nothing, nothing)
	assertInOrder(t, begin, ready, all, none)
	whole, most := lastReady(all).Sub(begin), (agentTakes+alone)*105/100
	assert.LessOrEqual(t, whole, most)
	figure(t, "%d apps after an agent that takes %s: all ready %.1f s after containerd began, at most %.1f s; the agent after %.1f s; the herd alone %.1f s; without startAfter %.1f s and %d crashes",
		agentApps, agentTakes, whole.Seconds(), most.Seconds(), ready.Sub(begin).Seconds(), alone.Seconds(), unordered.Seconds(), crashes)
}

// The API server is away until a minute after kubelet: first for all, so that kubelet has no pods until then, and then
// only for the daemon, which knows the agent by its sandbox.
func TestRebootInOrderWithoutTheAPIServer(t *testing.T) {
	cut, kubeconfig := newWire(t)
	n := newAgentNode(t, startDaemonWith(t, "--kubeconfig", kubeconfig, "--node-name", node.NodeName))
	n.configure(t, "{daemonSet: "+n.infra+"/agent, timeout: 1m30s}")

	begin, ready, all, crashes := n.reboots(t, false, func() { require.NoError(t, node.APIServer.Stop(t.Context())) }, func() {
		assert.Equal(t, "Disk", n.d.status(t).Config.Origin)
		after(t.Context(), time.Minute)
		require.NoError(t, node.APIServer.Start(t.Context()))
	})
	assertInOrder(t, begin, ready, all, crashes)
	figure(t, "the API server was away for a minute: the agent ready after %.1f s, all apps after %.1f s", ready.Sub(begin).Seconds(), lastReady(all).Sub(begin).Seconds())
	n.d.idle(t)

	begin, ready, all, crashes = n.reboots(t, false, func() { cut.set(true) }, func() {
		after(t.Context(), time.Minute)
		cut.set(false)
	})
	assertInOrder(t, begin, ready, all, crashes)
	figure(t, "the API server was away for the daemon alone: the agent ready after %.1f s, the first app began after %.1f s, all ready after %.1f s",
		ready.Sub(begin).Seconds(), all[0].started.Sub(begin).Seconds(), lastReady(all).Sub(begin).Seconds())
}

// The agent is broken for good: the apps start after its time, in the same pace.
func TestRebootWithABrokenAgent(t *testing.T) {
	const bound = 40 * time.Second
	d := startDaemonWith(t, "--kubeconfig", asServiceAccount(t), "--node-name", node.NodeName)
	infra, ns, never := namespace(t), namespace(t), newLatch(t)
	daemonSet(t, infra, "agent", herdPod(0, never.holds))
	deploy(t, ns, "app", agentApps, herdPod(1))
	eventually(t, "all apps are ready", func() bool { return allReady(t, ns, agentApps) })
	agent := infra + "/agent"
	d.configure(t, fmt.Sprintf("{throttleConfig: {maxConcurrent: {value: 2}}, exemptions: {daemonSets: {namespaces: ['*']}}, startAfter: [{daemonSet: %s, timeout: %s}]}", agent, bound))
	eventually(t, "the entry has had its time", func() bool { return len(timedOut(t, agent)) == 1 })

	shutDown(t, d)
	begin := time.Now()
	boot(t, d)
	all := readyAgain(t, ns, begin, agentApps)
	logLives(t, begin, all)
	assert.GreaterOrEqual(t, all[0].started.Sub(begin), bound)
	assert.LessOrEqual(t, mostStarting(t, all), 2, "pods between the start of their process and ready")
	assert.Len(t, timedOut(t, agent), 2, "one event for each time")
	figure(t, "the first app began %.1f s after containerd, all ready after %.1f s; the agent had %s", all[0].started.Sub(begin).Seconds(), lastReady(all).Sub(begin).Seconds(), bound)
}
