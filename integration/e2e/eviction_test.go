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
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node that runs short of process IDs has so many pods that start, which kubelet never
// evicts, and so many that wait for them at the gate, as many as it holds.
const (
	evictionLimit   = 2
	evictionWaiting = 2*evictionLimit + 1
	// evictionJudged is how many evictions of pods that wait must succeed. The first may
	// fail: kubelet evicts for up to 10 s before it says on its Node what it runs short of.
	evictionJudged = 2
	// evictionMargin is how many threads the machine may have beside those of the scenario
	// before kubelet evicts, and how many too many those of the scenario are.
	evictionMargin = 2000
)

// What kubelet logs of an eviction, before the pod.
const (
	evictionDone   = `"Eviction manager: pod is evicted successfully" pod="`
	evictionFailed = `"Eviction manager: pod failed to evict" err="timeout waiting to kill pod" pod="`
)

var evictionLines = regexp.MustCompile(`"Eviction manager: pod`)

// kubelet evicts pods of a node that runs short of process IDs, while others wait at the gate: once kubelet reports the
// shortage, all of those leave the gate and wait by being refused, kubelet evicts some of them, and nothing of them
// starts. When the shortage is over, the rest waits at the gate again.
func TestKubeletEvictsPodsThatWait(t *testing.T) {
	scarceNode(t)
	evictionClasses(t)
	d := evictionDaemon(t, asServiceAccount(t))
	starting, ns := podsAtGate(t, d)
	said := logSize(t, node.Kubelet)
	end := exhaust(t)
	eventually(t, "kubelet reports the shortage", func() bool { return shortOfProcessIDs(t) })
	reported := time.Now()
	eventually(t, "nobody waits at the gate", func() bool { return d.status(t).Gate.Waiters == 0 })
	left := time.Since(reported)
	eventually(t, "kubelet evicts those that wait", func() bool {
		return strings.Count(logSince(t, node.Kubelet, said), evictionDone+ns+"/") >= evictionJudged
	})
	assert.Contains(t, d.status(t).Gate.WhyNot, "the node is short of memory, disk or process IDs")
	end()
	log := logSince(t, node.Kubelet, said)
	logLines(t, log, evictionLines)
	recovers(t)

	done, failed := strings.Count(log, evictionDone+ns+"/"), strings.Count(log, evictionFailed+ns+"/")
	figure(t, "%.1f s after kubelet had reported the shortage nobody waited at the gate; of the %d pods there kubelet evicted %d, and failed to %d times",
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
		assert.Equal(t, 1, startedEvents(t, p), "kubelet tells of starts: %s", p.Name)
	}
	eventually(t, "the others wait at the gate again, and no hook of those is left", func() bool {
		s := d.status(t)
		return s.Gate.Waiters == len(s.Waiting) && s.Gate.Waiters > 0 && s.Gate.Waiters <= evictionWaiting-evicted
	})
}

// scarceNode has kubelet evict pods when the machine has many more threads than now, until
// the test ends.
func scarceNode(t *testing.T) {
	t.Helper()
	free := min(number(t, "/proc/sys/kernel/pid_max"), number(t, "/proc/sys/kernel/threads-max")) - threads(t)
	require.Greater(t, free, 3*evictionMargin, "too few process IDs on this machine")
	t.Cleanup(func() { assert.NoError(t, node.RestartKubelet(context.Background(), nil), "the node is as it was") })
	require.NoError(t, node.RestartKubelet(t.Context(), func(config map[string]any) {
		hard := map[string]string{"pid.available": strconv.Itoa(free - evictionMargin)}
		if given, ok := config["evictionHard"].(map[string]string); ok {
			maps.Copy(hard, given)
		}
		config["evictionHard"] = hard
		// So that the node recovers soon.
		config["evictionPressureTransitionPeriod"] = "1s"
		// So that nobody's wait is over for its length, however slow this goes.
		config["runtimeRequestTimeout"] = "30m"
	}))
}

// threads gives how many the machine has, as kubelet counts them.
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

// number gives the number that a file holds.
func number(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return n
}

// exhaust takes so many threads that kubelet evicts pods, until end is called or the test
// ends.
func exhaust(t *testing.T) (end func()) {
	t.Helper()
	before := threads(t)
	var held, ended sync.WaitGroup
	release := make(chan struct{})
	for range 2 * evictionMargin {
		held.Add(1)
		ended.Go(func() {
			runtime.LockOSThread() // a thread that is not unlocked ends with its goroutine
			held.Done()
			<-release
		})
	}
	held.Wait()
	require.Greater(t, threads(t), before+evictionMargin, "the threads are there")
	end = sync.OnceFunc(func() {
		close(release)
		ended.Wait()
	})
	t.Cleanup(end)
	return end
}

// recovers waits until kubelet says that it runs short of nothing.
func recovers(t *testing.T) {
	t.Helper()
	eventually(t, "the node has recovered", func() bool {
		n, err := node.Client().CoreV1().Nodes().Get(t.Context(), node.NodeName, metav1.GetOptions{})
		require.NoError(t, err)
		return len(n.Spec.Taints) == 0 && !shortOfProcessIDs(t)
	})
}

// shortOfProcessIDs tells whether kubelet says so on its Node.
func shortOfProcessIDs(t *testing.T) bool {
	t.Helper()
	n, err := node.Client().CoreV1().Nodes().Get(t.Context(), node.NodeName, metav1.GetOptions{})
	require.NoError(t, err)
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodePIDPressure && c.Status != corev1.ConditionFalse
	})
}

// evictionClass is the class of the pod that is evicted as the n-th.
func evictionClass(n int) string { return fmt.Sprintf("evicted-%d", n) }

// evictionClasses makes kubelet evict those that wait in the order of their names.
func evictionClasses(t *testing.T) {
	t.Helper()
	api := node.Client().SchedulingV1().PriorityClasses()
	for n := range evictionWaiting {
		_, err := api.Create(t.Context(), &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: evictionClass(n)}, Value: int32(n - evictionWaiting),
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, api.Delete(context.Background(), evictionClass(n), metav1.DeleteOptions{})) })
	}
}

// podsAtGate makes pods that take all slots and others that wait for them, and gives their
// namespaces. Each of those has two containers: kubelet goes on with the
// second when the first has not started.
func podsAtGate(t *testing.T, d *daemon) (starting, waiting string) {
	t.Helper()
	d.configure(t, fmt.Sprintf("{maxWait: 30m, throttleConfig: {maxConcurrent: {value: %d}, noProgressAfter: 30m}, startTimeout: 30m}", evictionLimit))
	starting, waiting = namespace(t), namespace(t)
	for i := range evictionLimit {
		createPod(t, starting, fmt.Sprintf("starting-%d", i), herdPod(0, sleeping("1h"), func(spec *corev1.PodSpec) {
			spec.PriorityClassName = "system-node-critical" // kubelet evicts no such pod
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
	eventually(t, "the others wait at the gate", func() bool { return d.status(t).Gate.Waiters == evictionWaiting })
	return starting, waiting
}

// startedEvents gives how often kubelet told that a container of a pod started.
func startedEvents(t *testing.T, p corev1.Pod) int {
	t.Helper()
	events, err := node.Client().CoreV1().Events(p.Namespace).List(t.Context(), metav1.ListOptions{
		FieldSelector: "reason=Started,involvedObject.uid=" + string(p.UID),
	})
	require.NoError(t, err)
	return len(events.Items)
}

// assertEvicted asserts that a pod which waited was evicted, and that nothing of it started.
func assertEvicted(t *testing.T, p corev1.Pod) {
	t.Helper()
	eventually(t, "the API server knows the end of "+p.Name, func() bool {
		now, err := node.Client().CoreV1().Pods(p.Namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
		require.NoError(t, err)
		return now.Status.Phase == corev1.PodFailed && now.Status.Reason == "Evicted"
	})
	assert.Zero(t, startedEvents(t, p), "%s started", p.Name)
}

// logLines writes those lines of kubelet's log that match to the log of the test.
func logLines(t *testing.T, log string, match *regexp.Regexp) {
	t.Helper()
	for line := range strings.Lines(log) {
		if match.MatchString(line) {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// evictionDaemon runs the daemon with this access, and lets containers wait for longer than
// any of this takes.
func evictionDaemon(t *testing.T, kubeconfig string) *daemon {
	t.Helper()
	return startDaemonWith(t, "--kubeconfig", kubeconfig, "--node-name", node.NodeName, "--gate-timeout", "20m")
}
