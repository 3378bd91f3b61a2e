//go:build e2e

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// life is the timeline of one pod, to well below a second, from its process, containerd and
// kubelet.
type life struct {
	pod corev1.Pod
	// created is when containerd was asked for the container that ran last. From then on the pod was
	// present at the gate.
	created time.Time
	// started is when the process began. ready is when kubelet found the pod ready or, for a pod
	// without probes, when it ended.
	started, ready time.Time
	// served is when the process said that it is ready. A probe finds this later.
	served time.Time
	// attempts is the number of containers that containerd knows.
	attempts int
}

// lives returns the timeline of every pod of a namespace, in the order of their starts.
func lives(t *testing.T, namespace string) []life {
	t.Helper()
	return livesSince(t, namespace, time.Time{})
}

// livesSince is lives with the times of readiness since a time.
func livesSince(t *testing.T, namespace string, since time.Time) []life {
	t.Helper()
	readyAt := kubeletReady(t, namespace, since)
	var all []life
	for _, pod := range pods(t, namespace) {
		l := life{pod: pod, ready: readyAt[pod.Name]}
		l.readContainers(t)
		l.readLog(t)
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b life) int {
		return cmp.Or(a.started.Compare(b.started), strings.Compare(a.pod.Name, b.pod.Name))
	})
	return all
}

func (l *life) readContainers(t *testing.T) {
	t.Helper()
	reply, err := node.CRI().ListContainers(t.Context(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.uid": kubeletUID(l.pod)},
	}})
	require.NoError(t, err)
	for _, c := range reply.Containers {
		l.attempts++
		if at := time.Unix(0, c.CreatedAt); at.After(l.created) {
			l.created = at
		}
	}
}

// kubeletUID is the UID by which the runtime knows the pod.
func kubeletUID(pod corev1.Pod) string {
	if hash := pod.Annotations["kubernetes.io/config.mirror"]; hash != "" {
		return hash
	}
	return string(pod.UID)
}

// readLog reads the process's own times: it logs when it began, and when it is ready or done.
func (l *life) readLog(t *testing.T) {
	t.Helper()
	log, err := node.Client().CoreV1().Pods(l.pod.Namespace).GetLogs(l.pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		return // no container of the pod ever started
	}
	for line := range strings.Lines(string(log)) {
		word, nanos, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(nanos, 10, 64)
		if err != nil {
			continue
		}
		switch at := time.Unix(0, n); word {
		case "started":
			l.started = at
		case "ready":
			l.served = at
			// For a pod with a readiness probe, only kubelet's report counts.
			if l.pod.Spec.Containers[0].ReadinessProbe == nil {
				l.ready = at
			}
		}
	}
}

var probeLine = regexp.MustCompile(`^I(\d{4} \d{2}:\d{2}:\d{2}\.\d{6}).*"SyncLoop \(probe\)".*probe="readiness" status="ready" pod="([^"/]+)/([^"]+)"`)

// kubeletReady reads from kubelet's log when the pods of a namespace first became ready since a
// time, by name.
func kubeletReady(t *testing.T, namespace string, since time.Time) map[string]time.Time {
	t.Helper()
	at := map[string]time.Time{}
	for pod, times := range kubeletReadies(t, namespace) {
		if i := slices.IndexFunc(times, func(when time.Time) bool { return !when.Before(since) }); i >= 0 {
			at[pod] = times[i]
		}
	}
	return at
}

// kubeletReadies reads from kubelet's log all times at which the pods of a namespace became ready,
// by name.
func kubeletReadies(t *testing.T, namespace string) map[string][]time.Time {
	t.Helper()
	file, err := os.Open(node.Kubelet.LogFile())
	require.NoError(t, err)
	defer file.Close()
	at := map[string][]time.Time{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := probeLine.FindStringSubmatch(lines.Text())
		if len(m) == 0 || m[2] != namespace {
			continue
		}
		when, err := time.ParseInLocation("2006 0102 15:04:05.000000", strconv.Itoa(time.Now().Year())+" "+m[1], time.Local)
		require.NoError(t, err)
		at[m[3]] = append(at[m[3]], when)
	}
	require.NoError(t, lines.Err())
	return at
}

// An outage is a time in which no daemon was connected to containerd.
type outage struct{ from, to time.Time }

// missed reports whether no daemon could hold a container, because it was created or its process
// began in the outage. containerd notes the creation a moment after it has asked the daemon.
func (o outage) missed(made, began time.Time) bool {
	const moment = time.Second
	in := func(at time.Time) bool { return at.After(o.from) && at.Before(o.to.Add(moment)) }
	return in(made) || in(began)
}

var synchronizedLine = regexp.MustCompile(`^time="([^"]+)".*msg="plugin \\"05-pod-pacemaker\\" connected and synchronized"`)

// outageFrom waits for the end of an outage that began at a time: when containerd reports that the
// daemon is connected again.
func outageFrom(t *testing.T, from time.Time) (o outage) {
	t.Helper()
	watched(t, "containerd reports that the daemon is connected", func() bool {
		log, err := os.ReadFile(node.Containerd.LogFile())
		require.NoError(t, err)
		for line := range strings.Lines(string(log)) {
			m := synchronizedLine.FindStringSubmatch(line)
			if len(m) == 0 {
				continue
			}
			at, err := time.Parse(time.RFC3339Nano, m[1])
			require.NoError(t, err)
			if at.After(from) {
				o = outage{from, at}
				return true
			}
		}
		return false
	})
	return o
}

// mostStarting returns the highest number of pods that were between the start of their process and
// ready at the same time. Each pod must have a start.
func mostStarting(t *testing.T, all []life) int {
	t.Helper()
	for _, l := range all {
		assert.False(t, l.started.IsZero(), "%s has no start", l.pod.Name)
	}
	return mostOfStarted(all)
}

// mostOfStarted is mostStarting for pods, some not started.
func mostOfStarted(all []life) (most int) {
	type edge struct {
		at   time.Time
		step int
	}
	var edges []edge
	for _, l := range all {
		if l.started.IsZero() {
			continue
		}
		edges = append(edges, edge{l.started, 1})
		if !l.ready.IsZero() {
			edges = append(edges, edge{l.ready, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.step, b.step)) })
	n := 0
	for _, e := range edges {
		n += e.step
		most = max(most, n)
	}
	return most
}

// startedIn counts the container starts of a namespace that kubelet reported.
func startedIn(t *testing.T, namespace string) (n int32) {
	t.Helper()
	events, err := node.Client().CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Started"})
	require.NoError(t, err)
	for _, e := range events.Items {
		n += max(1, e.Count)
	}
	return n
}

// lastReady returns when the last of the pods was ready.
func lastReady(all []life) (last time.Time) {
	for _, l := range all {
		if l.ready.After(last) {
			last = l.ready
		}
	}
	return last
}

// hooks returns the command lines of the node's live hooks and runc processes.
func hooks(t *testing.T) []string {
	t.Helper()
	return slices.Collect(maps.Values(hookProcesses(t)))
}

// hookProcesses is hooks by process ID.
func hookProcesses(t *testing.T) map[int]string {
	t.Helper()
	alive := map[int]string{}
	all, err := procfs.AllProcs()
	require.NoError(t, err)
	for _, p := range all {
		args, err := p.CmdLine()
		if err != nil || len(args) == 0 {
			continue // not a process, or gone
		}
		if name := filepath.Base(args[0]); name != "pacemaker-gate" && name != "runc" {
			continue
		}
		if cgroup, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID)); err == nil && strings.Contains(string(cgroup), node.Cgroup) {
			alive[p.PID] = strings.Join(args, " ")
		}
	}
	return alive
}

// after waits for a time, or until ctx ends.
func after(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
