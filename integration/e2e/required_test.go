//go:build e2e && full

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// requireDaemon is the annotation with which NRI's default validator makes no container of a pod before the daemon has
// been asked about it.
var requireDaemon = map[string]string{"required-plugins.noderesource.dev": `["pod-pacemaker"]`}

// notPresent is what the validator says while the daemon is away.
const notPresent = `required plugin "pod-pacemaker" not present`

// Pods that require the daemon start paced after a reboot, although the daemon is one of the node's pods and comes up
// beside them. While the daemon is away they do not start, pods without the annotation do, and kubelet says what is
// missing. When the daemon is back, they start within the limit.
func TestPodsThatRequireTheDaemon(t *testing.T) {
	const limit = 2
	onNode(t, "containerd", `
[plugins."io.containerd.nri.v1.nri".default_validator]
  enable = true
`)
	importImage(t, installImage)
	in := installChart(t, nil)
	eventually(t, "the DaemonSet's pod is ready", func() bool { return allReady(t, installName, 1) })
	d := &daemon{admin: admin.NewClient(filepath.Join(in.dir, "run", "admin.sock"))}
	var err error
	d.http, err = node.Forward(t.Context(), chartAddress)
	require.NoError(t, err)
	ns := namespace(t)
	deployAnnotated(t, ns, "herd", rebooted, herdPod(0.1, sleeping("5s")), requireDaemon) // no limit yet
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, rebooted) })
	d.configure(t, `{throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}, maxWait: 30m}`)
	d.idle(t)

	begin, up := in.rebootNode(t, d)
	all := readyAgain(t, ns, begin, rebooted)
	logLives(t, begin, all)
	d.idle(t)
	assertUnpaced(t, d, 1) // of its own pod
	assert.LessOrEqual(t, mostStarting(t, all), limit, "pods between the start of their process and ready")
	figure(t, "a reboot with a DaemonSet that the pods require: the daemon was back %.1f s after containerd began; %d pods showed that it was missing; at most %d starting; all ready after %.1f s",
		up.Sub(begin).Seconds(), len(missedDaemon(t, ns)), mostStarting(t, all), lastReady(all).Sub(begin).Seconds())

	in.awaitsDaemon(t, d)
}

// awaitsDaemon takes the daemon away from the node, and checks which pods start meanwhile, and that the others start
// when it is back.
func (in *install) awaitsDaemon(t *testing.T, d *daemon) {
	t.Helper()
	const waiting = 4
	in.send(t, "nowhere")
	gone := time.Now()
	ns := namespace(t)
	deployAnnotated(t, ns, "required", waiting, herdPod(0.1, sleeping("5s")), requireDaemon)
	deploy(t, ns, "other", 1, herdPod(0.1))
	eventually(t, "the pod that requires nothing is ready", func() bool { return readyOf(t, ns, "other") == 1 })
	eventually(t, "kubelet has tried each of the others again", func() bool {
		missed := missedDaemon(t, ns)
		for _, times := range missed {
			if times < 2 {
				return false
			}
		}
		return len(missed) == waiting && time.Since(gone) > time.Minute
	})
	shown := map[string]int{}
	for _, p := range pods(t, ns) {
		if !strings.HasPrefix(p.Name, "required-") {
			continue
		}
		for _, c := range p.Status.ContainerStatuses {
			assert.Nil(t, c.State.Running, "%s runs without the daemon", p.Name)
			assert.Zero(t, c.RestartCount)
			if c.State.Waiting != nil {
				shown[c.State.Waiting.Reason]++
			}
		}
	}
	assert.Zero(t, readyOf(t, ns, "required"))
	in.send(t, "")
	back := time.Now()
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, waiting+1) })
	d.idle(t)
	all := named(lives(t, ns), "required-")
	assert.LessOrEqual(t, mostStarting(t, all), 2, "pods between the start of their process and ready")
	figure(t, "without the daemon for %.0f s: %d pods that require it show %v and none ran, the other ran; all ready %.1f s after the DaemonSet was back",
		back.Sub(gone).Seconds(), waiting, shown, lastReady(all).Sub(back).Seconds())
}

// send moves the DaemonSet to the nodes with that label of the scenario; empty: to all.
func (in *install) send(t *testing.T, to string) {
	t.Helper()
	selector := `{"e2e.pod-pacemaker.io/only":"` + to + `"}`
	want := 0
	if to == "" {
		selector, want = `{"e2e.pod-pacemaker.io/only":null}`, 1
	}
	kubectl(t, "-n", installName, "patch", "daemonset", installName, "--type=merge", "-p",
		`{"spec":{"template":{"spec":{"nodeSelector":`+selector+`}}}}`)
	eventually(t, "the DaemonSet has followed", func() bool { return len(pods(t, installName)) == want })
}

// missedDaemon returns how often kubelet could not make a container of each pod because the daemon was missing.
func missedDaemon(t *testing.T, ns string) (times map[string]int32) {
	t.Helper()
	events, err := node.Client().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	times = map[string]int32{}
	for _, e := range events.Items {
		if strings.Contains(e.Message, notPresent) {
			times[e.InvolvedObject.Name] += max(1, e.Count)
		}
	}
	return times
}
