//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Numbers of pods on a node that runs short of process IDs: pods that start, which kubelet never
// evicts, and pods that wait for them at the gate, as many as the gate holds.
const (
	evictionLimit   = 2
	evictionWaiting = 2*evictionLimit + 1
	// evictionJudged is how many evictions of waiting pods must succeed. The first may fail: kubelet
	// evicts for up to 10 s before it reports the shortage on its Node.
	evictionJudged = 2
	// evictionMargin is how many more threads the machine may have, beside those of the scenario,
	// before kubelet evicts. The scenario exceeds the limit by the same number.
	evictionMargin = 2000
)

// The beginnings of kubelet's log lines about evictions, up to the pod's name.
const (
	evictionDone   = `"Eviction manager: pod is evicted successfully" pod="`
	evictionFailed = `"Eviction manager: pod failed to evict" err="timeout waiting to kill pod" pod="`
)

var evictionLines = regexp.MustCompile(`"Eviction manager: pod`)

// kubelet evicts pods of a node short of process IDs while others wait at the gate: once kubelet
// reports the shortage, all pods leave the gate and wait by refusal, kubelet evicts some of them,
// and none of their containers starts. After the shortage the remaining pods wait at the gate
// again.
func TestKubeletEvictsPodsThatWait(t *testing.T) {
	scarceNode(t)
	evictionClasses(t)
	d := evictionDaemon(t, asServiceAccount(t))
	starting, ns := podsAtGate(t, d)
	said := logSize(t, node.Kubelet)
	end := exhaust(t)
	eventually(t, "kubelet reports the shortage", func() bool { return shortOfProcessIDs(t) })
	reported := time.Now()
	eventually(t, "no pod waits at the gate", func() bool { return d.status(t).Gate.Waiters == 0 })
	left := time.Since(reported)
	eventually(t, "kubelet evicts waiting pods", func() bool {
		return strings.Count(logSince(t, node.Kubelet, said), evictionDone+ns+"/") >= evictionJudged
	})
	assert.Contains(t, d.status(t).Gate.WhyNot, "the node is short of memory, disk or process IDs")
	end()
	log := logSince(t, node.Kubelet, said)
	logLines(t, log, evictionLines)
	recovers(t)

	done, failed := strings.Count(log, evictionDone+ns+"/"), strings.Count(log, evictionFailed+ns+"/")
	figure(t, "%.1f s after kubelet had reported the shortage no pod waited at the gate; of the %d waiting pods kubelet evicted %d, and failed %d times",
		left.Seconds(), evictionWaiting, done, failed)
	evicted := 0
	for _, p := range pods(t, ns) {
		if strings.Contains(log, evictionDone+ns+"/"+p.Name+`"`) {
			evicted++
			assertEvicted(t, p)
		}
	}
	assert.GreaterOrEqual(t, evicted, evictionJudged)
	for _, p := range pods(t, starting) {
		assert.Equal(t, 1, startedEvents(t, p), "starts that kubelet reports of %s", p.Name)
	}
	eventually(t, "the other pods wait at the gate again, and the hooks of the evicted pods are gone", func() bool {
		s := d.status(t)
		return s.Gate.Waiters == len(s.Waiting) && s.Gate.Waiters > 0 && s.Gate.Waiters <= evictionWaiting-evicted
	})
}

// scarceNode makes kubelet evict pods when the machine has many more threads than now, until the
// test ends.
func scarceNode(t *testing.T) {
	t.Helper()
	free := min(number(t, "/proc/sys/kernel/pid_max"), number(t, "/proc/sys/kernel/threads-max")) - threads(t)
	require.Greater(t, free, 3*evictionMargin, "too few process IDs on this machine")
	t.Cleanup(func() {
		assert.NoError(t, node.RestartKubelet(context.Background(), nil), "kubelet's configuration is restored")
	})
	require.NoError(t, node.RestartKubelet(t.Context(), func(config map[string]any) {
		hard := map[string]string{"pid.available": strconv.Itoa(free - evictionMargin)}
		if given, ok := config["evictionHard"].(map[string]string); ok {
			maps.Copy(hard, given)
		}
		config["evictionHard"] = hard
		// The node recovers soon.
		config["evictionPressureTransitionPeriod"] = "1s"
		// No wait reaches its deadline, however slow the scenario is.
		config["runtimeRequestTimeout"] = "30m"
	}))
}

// threads returns the machine's number of threads, as kubelet counts them.
func threads(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	require.NoError(t, err)
	_, all, ok := strings.Cut(strings.Fields(string(text))[3], "/")
	require.True(t, ok, "%s", text)
	n, err := strconv.Atoi(all)
	require.NoError(t, err)
	return n
}

// number returns the number in a file.
func number(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return n
}

// exhaust uses enough threads that kubelet evicts pods, until end is called or the test ends.
func exhaust(t *testing.T) (end func()) {
	t.Helper()
	before := threads(t)
	var held, ended sync.WaitGroup
	release := make(chan struct{})
	for range 2 * evictionMargin {
		held.Add(1)
		ended.Go(func() {
			runtime.LockOSThread() // a locked thread ends with its goroutine
			held.Done()
			<-release
		})
	}
	held.Wait()
	require.Greater(t, threads(t), before+evictionMargin, "threads after the scenario has started its own")
	end = sync.OnceFunc(func() {
		close(release)
		ended.Wait()
	})
	t.Cleanup(end)
	return end
}

// recovers waits until kubelet reports no shortage.
func recovers(t *testing.T) {
	t.Helper()
	eventually(t, "the node has recovered", func() bool {
		n, err := node.Client().CoreV1().Nodes().Get(t.Context(), node.NodeName, metav1.GetOptions{})
		require.NoError(t, err)
		return len(n.Spec.Taints) == 0 && !shortOfProcessIDs(t)
	})
}

// shortOfProcessIDs reports whether kubelet reports the shortage on its Node.
func shortOfProcessIDs(t *testing.T) bool {
	t.Helper()
	n, err := node.Client().CoreV1().Nodes().Get(t.Context(), node.NodeName, metav1.GetOptions{})
	require.NoError(t, err)
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodePIDPressure && c.Status != corev1.ConditionFalse
	})
}

// evictionClass is the priority class of the n-th pod to be evicted.
func evictionClass(n int) string { return fmt.Sprintf("evicted-%d", n) }

// evictionClasses makes kubelet evict the waiting pods in the order of their names.
func evictionClasses(t *testing.T) {
	t.Helper()
	for n := range evictionWaiting {
		priorityClass(t, evictionClass(n), int32(n-evictionWaiting))
	}
}

// podsAtGate creates pods that take all slots and pods that wait for them, and returns their
// namespaces. Each waiting pod has two containers: kubelet starts the second even if the first has
// not started.
func podsAtGate(t *testing.T, d *daemon) (starting, waiting string) {
	t.Helper()
	d.configure(t, fmt.Sprintf("{maxWait: 30m, throttleConfig: {maxConcurrent: {value: %d}, noProgressAfter: 30m}, startTimeout: 15m}", evictionLimit))
	starting, waiting = namespace(t), namespace(t)
	for i := range evictionLimit {
		createPod(t, starting, fmt.Sprintf("starting-%d", i), herdPod(0, sleeping("1h"), func(spec *corev1.PodSpec) {
			spec.PriorityClassName = "system-node-critical" // kubelet never evicts this class
		}))
	}
	eventually(t, "the slots are held", func() bool {
		return len(d.status(t).Starting) == evictionLimit && runningIn(t, starting, "") == evictionLimit
	})
	for n := range evictionWaiting {
		createPod(t, waiting, fmt.Sprintf("waits-%d", n), herdPod(0, func(spec *corev1.PodSpec) {
			spec.PriorityClassName = evictionClass(n)
			beside := *spec.Containers[0].DeepCopy()
			beside.Name, beside.ReadinessProbe = "beside", nil
			spec.Containers = append(spec.Containers, beside)
		}))
	}
	eventually(t, "the other pods wait at the gate", func() bool { return d.status(t).Gate.Waiters == evictionWaiting })
	return starting, waiting
}

// startedEvents returns how many container starts of a pod kubelet reported.
func startedEvents(t *testing.T, p corev1.Pod) int {
	t.Helper()
	events, err := node.Client().CoreV1().Events(p.Namespace).List(t.Context(), metav1.ListOptions{
		FieldSelector: "reason=Started,involvedObject.uid=" + string(p.UID),
	})
	require.NoError(t, err)
	return len(events.Items)
}

// assertEvicted asserts that a waiting pod was evicted and that none of its containers started.
func assertEvicted(t *testing.T, p corev1.Pod) {
	t.Helper()
	eventually(t, "the API server reports the end of "+p.Name, func() bool {
		now, err := node.Client().CoreV1().Pods(p.Namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
		require.NoError(t, err)
		return now.Status.Phase == corev1.PodFailed && now.Status.Reason == "Evicted"
	})
	assert.Zero(t, startedEvents(t, p), "%s started", p.Name)
}

// logLines copies the matching lines of kubelet's log to the test's log.
func logLines(t *testing.T, log string, match *regexp.Regexp) {
	t.Helper()
	for line := range strings.Lines(log) {
		if match.MatchString(line) {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// evictionDaemon runs the daemon with this access. Its waits last longer than the scenario.
func evictionDaemon(t *testing.T, kubeconfig string) *daemon {
	t.Helper()
	return startDaemonWith(t, "--kubeconfig", kubeconfig, "--node-name", node.NodeName, "--gate-timeout", "1h")
}
