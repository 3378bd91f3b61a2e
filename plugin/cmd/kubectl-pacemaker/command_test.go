package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster gives the answers of kubectl.
type cluster struct {
	t       *testing.T
	pods    []corev1.Pod // the users' pods
	daemons map[string]corev1.Pod
	crashed []corev1.Pod // daemons that are on every node, too
	nodes   []v1alpha1.PacemakerNode
	events  []corev1.Event
	says    map[string]string // by daemon and command
	refuses string            // the answer of kubectl exec if it is forbidden
	read    func(ctx context.Context, path string) (string, error)

	mu    sync.Mutex
	asked []string // guarded by mu
}

func (c *cluster) kubectl(_ context.Context, args ...string) (stdout string, err error) {
	line := strings.Join(args, " ")
	c.mu.Lock()
	c.asked = append(c.asked, line)
	c.mu.Unlock()
	answer := func(v any) (string, error) {
		text, err := json.Marshal(v)
		require.NoError(c.t, err)
		return string(text), nil
	}
	switch {
	case strings.HasPrefix(line, "exec ") && c.refuses != "":
		return "", errors.New(c.refuses)
	case strings.HasPrefix(line, "exec "):
		_, own, _ := strings.Cut(line, "-- pod-pacemaker ")
		for key, said := range c.says {
			if daemon, question, _ := strings.Cut(key, " "); strings.Contains(line, " "+daemon+" ") && question == own {
				return said, nil
			}
		}
		return "", errors.New("pod-pacemaker: " + own + ": " + notKnown + ": it neither waits nor starts\ncommand terminated with exit code 1")
	case strings.Contains(line, "get -o json pods --namespace "):
		_, node, _ := strings.Cut(line, "spec.nodeName=")
		found := corev1.PodList{Items: slices.Clone(c.crashed)}
		if pod, ok := c.daemons[node]; ok {
			found.Items = append(found.Items, pod)
		}
		return answer(found)
	case strings.Contains(line, "get -o json pods --all-namespaces --field-selector spec.nodeName="):
		return answer(corev1.PodList{Items: c.pods})
	case strings.HasPrefix(line, "get -o json pacemakernodes"):
		return answer(map[string]any{"kind": "List", "items": c.nodes})
	case strings.HasPrefix(line, "get -o json events "):
		return answer(corev1.EventList{Items: c.events})
	}
	for _, pod := range c.pods {
		if line == "get -o json pod "+pod.Name+" --namespace "+pod.Namespace {
			return answer(pod)
		}
	}
	return "", errors.New("Error from server (NotFound): " + line)
}

// call runs the program against the cluster.
func (c *cluster) call(args ...string) (stdout string, err error) {
	var out bytes.Buffer
	a := &asker{kubectl: c.kubectl, read: c.read, stdout: &out}
	root := a.command()
	root.SetArgs(args)
	err = root.ExecuteContext(c.t.Context())
	return out.String(), err
}

// output runs the program, which must succeed.
func (c *cluster) output(args ...string) string {
	c.t.Helper()
	stdout, err := c.call(args...)
	require.NoError(c.t, err, args)
	return stdout
}

func daemonPod(name string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "pod-pacemaker"},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func pod(name string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: "u-1"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	change(&p)
	return p
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func TestWhyAsksTheDaemonOfThePodsNode(t *testing.T) {
	t.Parallel()
	c := &cluster{
		t: t, pods: []corev1.Pod{pod("web-0", on("n2"))},
		daemons: map[string]corev1.Pod{"n1": daemonPod("pp-1"), "n2": daemonPod("pp-2")},
		says:    map[string]string{"pp-2 why shop/web-0": "shop/web-0: waiting 12s, place 4 of 9: Concurrency: 2 of 2 starting\n"},
	}
	for _, args := range [][]string{{"why", "web-0", "-n", "shop"}, {"why", "shop/web-0"}, {"why", "shop/web-0", "-n", "shop"}} {
		out := c.output(args...)
		assert.Equal(t, "shop/web-0: waiting 12s, place 4 of 9: Concurrency: 2 of 2 starting; on n2\n", out)
	}
}

func TestWhyRefusesAContradiction(t *testing.T) {
	t.Parallel()
	for arg, says := range map[string]string{
		"shop/web-0": `"shop/web-0" contradicts --namespace other`, "a/b/c": `"a/b/c": must be POD or NAMESPACE/POD, like shop/web-0`,
		"/web-0": "must be POD or NAMESPACE/POD", "other/": "must be POD or NAMESPACE/POD", "": "must be POD or NAMESPACE/POD",
	} {
		c := &cluster{t: t}
		_, err := c.call("why", arg, "--namespace", "other")
		require.ErrorContains(t, err, says)
		assert.Empty(t, c.asked)
	}
}

// The daemon knows that kubelet does not make the pod's container; the pod's status says why.
func TestWhyOfAPodWhoseImageCannotBePulledNamesTheImage(t *testing.T) {
	t.Parallel()
	c := &cluster{
		t: t, daemons: map[string]corev1.Pod{"n1": daemonPod("pp-1")},
		pods: []corev1.Pod{pod("a", func(p *corev1.Pod) {
			on("n1")(p)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
		})},
		says: map[string]string{"pp-1 why shop/a": "shop/a: not waiting for pod-pacemaker, but preparing for 40s\n"},
	}
	out := c.output("why", "shop/a")
	assert.Equal(t, "shop/a: not waiting for pod-pacemaker, but preparing for 40s; container app: ImagePullBackOff: no such image; on n1\n", out)
}

// The daemon's JSON comes as it is. What the plugin finds out itself has no such form.
func TestWhyInJSONIsTheDaemonsAnswer(t *testing.T) {
	t.Parallel()
	c := &cluster{
		t: t, pods: []corev1.Pod{pod("a", on("n1")), pod("b", on("n1"))}, daemons: map[string]corev1.Pod{"n1": daemonPod("pp-1")},
		says: map[string]string{"pp-1 why shop/a -o json": "{\n}\n"},
	}
	assert.Equal(t, "{\n}\n", c.output("why", "shop/a", "-o", "json"))
	out, err := c.call("why", "shop/b", "-o", "json")
	require.ErrorContains(t, err, "shop/b: no daemon answers: not waiting for pod-pacemaker: ")
	assert.Empty(t, out)
}

func TestWhySaysWhatElseKeepsAPod(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		pod  corev1.Pod
		want string
	}{
		{pod("a", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}
		}), "not waiting for pod-pacemaker: Pending for the scheduler: 0/3 nodes are available"},
		{pod("a", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x/quota"}} }), "Pending for the scheduler, which waits until its gate x/quota is gone"},
		{pod("a", func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }), "not waiting: it is being deleted"},
		{pod("a", func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }), "not waiting: it has ended (Failed: Evicted)"},
		{pod("a", on("n9")), "it is Pending, and its status has no reason (the daemon of n9 cannot be asked: no daemon runs in a pod on node n9: namespace pod-pacemaker, set by --daemon-namespace, has none with the label "},
		{pod("a", func(p *corev1.Pod) {
			on("n1")(p)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such\nimage"}}}}
		}), "not waiting for pod-pacemaker: container app: ImagePullBackOff: no such image"},
		{pod("a", func(p *corev1.Pod) {
			on("n1")(p)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}), "container app runs, and its readiness probe has not succeeded yet"},
		{pod("a", func(p *corev1.Pod) {
			on("n1")(p)
			p.Status.Conditions = daemonPod("").Status.Conditions
		}), "not waiting for pod-pacemaker: it is ready"},
	} {
		c := &cluster{t: t, pods: []corev1.Pod{x.pod}, daemons: map[string]corev1.Pod{"n1": daemonPod("pp-1")}}
		assert.Contains(t, c.output("why", "shop/a"), x.want)
	}
}

// A user may lack the right to execute in the daemon's pod. The pod's events still say something.
func TestWhyWithoutTheRightToAskTheDaemon(t *testing.T) {
	t.Parallel()
	event := func(component, reason, message string, ago time.Duration) corev1.Event {
		return corev1.Event{Source: corev1.EventSource{Component: component}, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(time.Now().Add(-ago))}
	}
	c := &cluster{
		t: t, pods: []corev1.Pod{pod("a", on("n1"))}, daemons: map[string]corev1.Pod{"n1": daemonPod("pp-1")},
		refuses: "Error from server (Forbidden): pods \"pp-1\" is forbidden: cannot create pods/exec\nmore",
		events: []corev1.Event{
			event("pod-pacemaker", "WaitingToStart", "Waits for its turn to start, place 2 of 3", 5*time.Second),
			event("pod-pacemaker", "WaitingToStart", "place 3 of 3", time.Minute), event("kubelet", "Pulled", "an image", 0),
		},
	}
	out := c.output("why", "shop/a")
	assert.Regexp(t, `^shop/a: its last event, \d+s ago, is WaitingToStart: Waits for its turn to start, place 2 of 3 \(the daemon of n1 cannot be asked: Error from server \(Forbidden\): pods "pp-1" is forbidden: cannot create pods/exec more\)\n$`, out)

	// What the event says is over once the pod has started.
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-ago)) }
	const waits = "its last event, "
	for _, x := range []struct {
		want   string
		change func(*corev1.PodStatus)
	}{
		{"it is ready", func(s *corev1.PodStatus) { s.Conditions = daemonPod("").Status.Conditions }},
		{"container app runs, and its readiness probe has not succeeded yet", func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(0)}}}}
		}},
		{"container app: CrashLoopBackOff", func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(0)}},
			}}
		}},
		{"container app: ImagePullBackOff", func(s *corev1.PodStatus) {
			s.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(0)}}}}
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
		}},
		{waits, func(s *corev1.PodStatus) { // a restart waits
			s.ContainerStatuses = []corev1.ContainerStatus{
				{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(time.Hour)}}},
				{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(time.Hour)}}},
			}
		}},
	} {
		c.pods = []corev1.Pod{pod("a", func(p *corev1.Pod) { on("n1")(p); x.change(&p.Status) })}
		out := c.output("why", "shop/a")
		assert.True(t, strings.HasPrefix(out, "shop/a: "+x.want), "%s: %s", x.want, out)
	}
}

// A tenant can write the events and the status of their pods, and whoever has the token of a daemon its PacemakerNode.
func TestTextFromElsewhereCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;x\a\u009b31m\u202egnp\r\nroot# "
	failed := pod("failed", func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, evil })
	pending := pod("pending", func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: evil}}
	})
	waiting := pod("waiting", on("n1"))
	n1, n2 := pacemakerNode("n1", 1, time.Minute), pacemakerNode("n2", 0, 0)
	n1.Status.HeldBy, n1.Status.NodeName, n2.Status.Conditions = evil, evil, readiness(metav1.ConditionFalse, evil)
	c := &cluster{
		t: t, pods: []corev1.Pod{failed, pending, waiting}, nodes: []v1alpha1.PacemakerNode{n1, n2},
		daemons: map[string]corev1.Pod{"n1": daemonPod("pp-1"), "n2": daemonPod("pp-2")}, refuses: "Forbidden: " + evil,
		events: []corev1.Event{{Source: corev1.EventSource{Component: "pod-pacemaker"}, Reason: "Waiting" + evil, Message: evil}},
	}
	for _, line := range []string{"why shop/failed", "why shop/pending", "why shop/waiting", "status", "top", "__complete status "} {
		out := c.output(strings.Split(line, " ")...)
		assert.Contains(t, out, "]0;x 31m gnp root#", line)
		for _, r := range out {
			assert.True(t, unicode.IsPrint(r) || r == '\n', "%q of %s", out, line)
		}
	}
	out, err := (&cluster{t: t, daemons: c.daemons, says: map[string]string{"pp-1 status": "n1:" + evil + "\n"}}).call("status", "n1")
	require.NoError(t, err)
	assert.Equal(t, "n1: ]0;x  31m gnp \nroot# \n", out)
	var errs bytes.Buffer
	assert.Equal(t, exitInvalid, run(t.Context(), []string{"status", "--x\x1b[31m"}, io.Discard, &errs))
	assert.Contains(t, errs.String(), "unknown flag: --x [31m\n'kubectl")
}

func TestWhyOfAPodThatIsNotThere(t *testing.T) {
	t.Parallel()
	_, err := (&cluster{t: t}).call("why", "shop/none")
	require.ErrorContains(t, err, "NotFound")
}

// readiness returns the condition Ready of a PacemakerNode.
func readiness(status metav1.ConditionStatus, message string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Message: message}}
}

func pacemakerNode(name string, waiting int32, since time.Duration) v1alpha1.PacemakerNode {
	n := v1alpha1.PacemakerNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status = v1alpha1.PacemakerNodeStatus{NodeName: name, Config: "every-node", Mode: v1alpha1.ModeEnforce, Conditions: readiness(metav1.ConditionTrue, "pods wait by refusal"), Waiting: waiting, Starting: 2, Limit: 2, HeldBy: "Concurrency"}
	if waiting > 0 {
		n.Status.WaitingSince = new(metav1.NewTime(time.Now().Add(-since)))
	}
	return n
}

func TestTopSortsByTheLongestWait(t *testing.T) {
	t.Parallel()
	broken := pacemakerNode("n3", 0, 0)
	broken.Status.Conditions = nil // its daemon has reported nothing yet
	c := &cluster{
		t: t, nodes: []v1alpha1.PacemakerNode{pacemakerNode("n1", 1, 10*time.Second), pacemakerNode("n2", 4, 30*time.Hour), broken},
		daemons: map[string]corev1.Pod{"n1": daemonPod("pp-1"), "n2": daemonPod("pp-2")},
		says:    map[string]string{"pp-2 status": "n2: all of it\n", "pp-2 status -o json": "{n2}"},
	}
	out := c.output("status")
	assert.Regexp(t, `(?m)^n2 +every-node +Enforce +true +4 +2 +2 +30h +Concurrency +pods wait by refusal$`, out)
	assert.Contains(t, out, "\nnodes: 3, not ready: 1, gone: 0; pods waiting: 5, starting: 6\n")

	out = c.output("top")
	lines := strings.Split(out, "\n")
	assert.True(t, strings.HasPrefix(lines[1], "n2 ") && strings.HasPrefix(lines[2], "n1 "), out)
	assert.NotContains(t, out, "n3")

	out = c.output("top", "-o", "json")
	var listed []v1alpha1.PacemakerNode
	require.NoError(t, json.Unmarshal([]byte(out), &listed))
	require.Len(t, listed, 2)
	assert.Equal(t, "n2", listed[0].Name)
	_, err := c.call("top", "-o", "yaml")
	require.ErrorContains(t, err, "must be text or json")

	assert.Equal(t, "n2: all of it\n", c.output("status", "n2"))
	assert.Equal(t, "{n2}", c.output("status", "n2", "-o", "json"))
	c.crashed = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "crashed", Namespace: "pod-pacemaker"}}}
	assert.Equal(t, "n2: all of it\n", c.output("status", "n2"), "a daemon that is ready is asked")
	_, err = c.call("status", "n3")
	require.ErrorContains(t, err, notKnown, "no other is there")
	c.crashed = nil
	_, err = c.call("status", "n3")
	require.ErrorContains(t, err, "no daemon runs in a pod on node n3")
	evicted := daemonPod("evicted")
	evicted.Status.Phase = corev1.PodFailed
	c.daemons["n4"] = evicted
	_, err = c.call("status", "n4")
	require.ErrorContains(t, err, "no daemon runs in a pod on node n4")
}

// A daemon that died cannot report it, so its last report stays as it is.
func TestADaemonThatIsSilentIsGone(t *testing.T) {
	t.Parallel()
	silent, unready, there := pacemakerNode("n1", 5, time.Hour), pacemakerNode("n2", 0, 0), pacemakerNode("n3", 0, 0)
	since := metav1.NewTime(time.Now().Add(-31 * time.Minute))
	silent.Status.LastReportTime, there.Status.LastReportTime = &since, new(metav1.NewTime(time.Now().Add(-29*time.Minute)))
	unready.Status.Conditions = readiness(metav1.ConditionFalse, "NRI is off\nin containerd")
	c := &cluster{t: t, nodes: []v1alpha1.PacemakerNode{silent, unready, there}}
	out := c.output("status")
	assert.Regexp(t, `(?m)^n1 +- +- +gone +- +- +- +- +- +its daemon has not reported since `+since.UTC().Format(time.RFC3339)+`$`, out)
	assert.Regexp(t, `(?m)^n2 .* false .* NRI is off in containerd$`, out)
	assert.Regexp(t, `(?m)^n3 .* true .* pods wait by refusal$`, out)
	assert.Contains(t, out, "\nnodes: 3, not ready: 1, gone: 1; pods waiting: 0, starting: 4\n")

	assert.Equal(t, nobodyWaits+"\n\ngone: 1; 'kubectl pacemaker status' shows since when\n", c.output("top"))
}

func TestTopWithoutWaitingPods(t *testing.T) {
	t.Parallel()
	c := &cluster{t: t, nodes: []v1alpha1.PacemakerNode{pacemakerNode("n1", 0, 0)}}
	out := c.output("top")
	assert.Equal(t, "no pod waits on any node; nodes report up to 10 s late, and later in clusters of over 1,000 nodes\n", out)
}

func TestTheErrorNamesAClusterWithoutTheCRDs(t *testing.T) {
	t.Parallel()
	a := &asker{kubectl: func(context.Context, ...string) (string, error) {
		return "", errors.New(`error: the server doesn't have a resource type "pacemakernodes"`)
	}}
	root := a.command()
	root.SetArgs([]string{"status"})
	require.ErrorContains(t, root.ExecuteContext(t.Context()), "is pod-pacemaker installed?")
}

func TestTheErrorSaysThatThereIsNoKubectl(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, errs bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"status"}, &out, &errs))
	assert.Equal(t, "kubectl pacemaker: exec: \"kubectl\": executable file not found in $PATH\n", errs.String())
}

// These are the words of kubectl 1.36 without a cluster.
func TestTheErrorHasNoLogLinesOfKubectl(t *testing.T) {
	const says = "The connection to the server localhost:8080 was refused - did you specify the right host or port?\n"
	const log = `E0709 12:34:56.789012    4242 memcache.go:265] "Unhandled Error" err="couldn't get current server API group list"` + "\n"
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\nexec >&2\nprintf '%s' '"+
		strings.ReplaceAll(log+log+log+says, "'", `'\''`)+"'\nexit 1\n"), 0o700))
	t.Setenv("PATH", dir)
	var out, errs bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"status"}, &out, &errs))
	assert.Equal(t, "kubectl pacemaker: "+says, errs.String())

	const answer = "pod-pacemaker: a/b: " + notKnown + "\ncommand terminated with exit code 1"
	assert.Equal(t, answer, complaint(log+answer+"\n"), "why needs the line before the last")
}

func TestKubectlGetsItsFlagsAndErrorsAreReported(t *testing.T) {
	t.Parallel()
	c := &cluster{t: t}
	_, err := c.call("status", "--context", "big", "--as", "anna", "--as-group", "a,b", "--as-group=c", "--kubeconfig", "/k",
		"--server=https://s", "--token", "t", "--request-timeout=5s", "--insecure-skip-tls-verify")
	require.ErrorContains(t, err, "NotFound", "kubectl's own error")
	assert.Equal(t, []string{"--token=t --as=anna --as-group=a,b --as-group=c --server=https://s --insecure-skip-tls-verify=true --context=big " +
		"--request-timeout=5s --kubeconfig=/k get -o json pacemakernodes.pod-pacemaker.io"}, c.asked)

	var out, errs bytes.Buffer
	assert.Equal(t, exitFailure, run(t.Context(), []string{"status", "--kubeconfig", "/none"}, &out, &errs))
	assert.NotContains(t, errs.String(), "--help", "the command line is right")
}

func TestWrongUsageIsExitCode64(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"why":               "POD is missing\n'kubectl pacemaker why --help' shows how to use it.\n",
		"page":              "NODE is missing\n'kubectl pacemaker page --help' shows how to use it.\n",
		"page a b":          "\"b\": only one NODE is accepted\n'kubectl pacemaker page --help' shows how to use it.\n",
		"status a b":        "\"b\": only one NODE is accepted\n'kubectl pacemaker status --help' shows how to use it.\n",
		"stats":             "unknown command \"stats\" for \"kubectl pacemaker\"",
		"top -n shop":       "unknown shorthand flag: 'n' in -n\n'kubectl pacemaker top --help' shows how to use it.\n",
		"why a/b -n shop":   "\"a/b\" contradicts --namespace shop\n'kubectl pacemaker why --help' shows how to use it.\n",
		"status -o=nothing": "must be text or json\n'kubectl pacemaker status --help' shows how to use it.\n",
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, 64, run(t.Context(), strings.Fields(line), &out, &errs), line)
		assert.Empty(t, out.String())
		assert.Contains(t, errs.String(), says)
	}
}

func TestKubectlCompletesThePlugin(t *testing.T) {
	t.Parallel()
	c := &cluster{t: t, nodes: []v1alpha1.PacemakerNode{pacemakerNode("n1", 0, 0), pacemakerNode("m1", 0, 0), pacemakerNode("n2", 0, 0)}}
	complete := func(words ...string) string {
		out := c.output(arguments(append([]string{"/usr/bin/kubectl_complete-pacemaker"}, words...))...)
		return out
	}
	assert.Equal(t, ":4\n", complete("co"), "and no command completion")
	assert.Contains(t, complete("status", "--cont"), "--context\t")
	assert.Equal(t, "n1\nn2\n:4\n", complete("status", "n"))
	assert.Equal(t, ":1\n", complete("status", "--context", "big", "n"), "this cluster does not answer")
	assert.Equal(t, "--context=big get -o json pacemakernodes.pod-pacemaker.io", c.asked[1])
	assert.Equal(t, "n1\nm1\nn2\n:4\n", complete("page", ""))
	assert.Equal(t, ":4\n", complete("page", "n1", ""))
	assert.Equal(t, ":4\n", complete("why", ""), "and no files")
	assert.Equal(t, []string{"status", "n1"}, arguments([]string{"kubectl-pacemaker", "status", "n1"}))
}

// Each command explains itself, and has the flags that it uses.
func TestHelp(t *testing.T) {
	t.Parallel()
	c := &cluster{t: t}
	for _, cmd := range (&asker{}).command().Commands() {
		assert.NotEmpty(t, cmd.Long, cmd.Name())
		assert.Contains(t, cmd.Example, "kubectl pacemaker "+cmd.Name(), cmd.Name())
		out := c.output(cmd.Name(), "--help")
		assert.Equal(t, cmd.Name() == "why", strings.Contains(out, "-n, --namespace"), out)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"version", "--version"} {
		out, err := (&cluster{t: t}).call(arg)
		require.NoError(t, err)
		assert.Equal(t, "kubectl-pacemaker dev\n", out)
	}
}
