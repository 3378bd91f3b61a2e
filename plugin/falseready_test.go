package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// reporter is a kubelet whose process a test starts, and which reports of one pod, whose
// start is under way since base and whose container runs since then.
type reporter struct {
	t    *testing.T
	proc bootedProc
	p    *pacer
	pod  podwatch.Pod
	slot *throttle.Ticket
	said *logtest.Hook
}

// base is when the pod of a reporter began; its kubelet ran before. A pacer knows no time
// before it was made.
var base = time.Now().Truncate(time.Second).Add(time.Hour)

func newReporter(t *testing.T) *reporter {
	proc := newBootedProc(t)
	log, said := logtest.NewNullLogger()
	o := Options{ProcRoot: proc.dir, CgroupRoot: proc.dir, KubeletProcess: []string{"kubelet"}, Log: log}
	r := &reporter{
		t: t, proc: proc, p: newPacer(o, nil, newMetrics()), said: said,
		pod: podwatch.Pod{
			UID: "pod", Namespace: "default", Name: "pod", AllRunning: true, Probed: true, ProbeEvery: 20 * time.Second,
			Containers: map[string]podwatch.Container{"app": {Kind: podwatch.App, Probed: true, Running: true, ID: "c"}},
		},
	}
	for file, content := range map[string]string{"cgroup.controllers": "cpu\n", "cpu.stat": "usage_usec 1\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(proc.dir, file), []byte(content), 0o600))
	}
	r.kubeletStarts(-time.Hour)
	r.slot = r.p.limiter.Join(base, throttle.Request{UID: "pod", Name: "default/pod"})
	require.True(t, r.slot.TryStart(base).Admitted)
	r.p.records["pod"] = newRecord(&api.PodSandbox{Uid: "pod", Namespace: "default", Name: "pod"})
	r.p.records["pod"].cgroupParent = "/"
	r.containerStarts("c", 0)
	r.p.publish()
	return r
}

// kubeletStarts replaces kubelet's process.
func (r *reporter) kubeletStarts(after time.Duration) {
	r.proc.runs(70, 1, "kubelet", base.Add(after).Sub(booted), "70")
}

// containerStarts has the pod's container run since so long after base.
func (r *reporter) containerStarts(id string, after time.Duration) {
	r.p.records["pod"].started(&api.Container{Id: id, Name: "app", Pid: 80}, base.Add(after))
}

// says reports at a time whether the pod is ready, since then; again is when the daemon
// looks again by itself, after base.
func (r *reporter) says(ready bool, after time.Duration) (again time.Duration) {
	r.pod.ContainersReady, r.pod.ReadinessSince = ready, base.Add(after.Truncate(time.Second))
	return r.look(after)
}

// look judges the start again, and gives when that is to be done next, after base; zero:
// when something changes.
func (r *reporter) look(after time.Duration) (again time.Duration) {
	at := r.p.judgeStarting(base.Add(after), r.slot, r.pod)
	if at.IsZero() {
		return 0
	}
	return at.Sub(base)
}

func (r *reporter) is(state throttle.State, reason throttle.Reason, why string) {
	r.t.Helper()
	is, because := r.slot.Status()
	assert.Equal(r.t, state, is, why)
	if state == throttle.Started {
		assert.Equal(r.t, reason, because, why)
	}
}

// doubts counts how often it was said that kubelet is not believed.
func (r *reporter) doubts() (n int) {
	for _, e := range r.said.AllEntries() {
		if strings.Contains(e.Message, "kubelet was restarted") {
			n++
		}
	}
	return n
}

// window is how long a report of a reporter is doubted.
const window = 20*time.Second + beginsToProbe

func TestTheWordOfAKubeletThatWasNotRestartedIsBelieved(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.says(true, 5*time.Second)
	r.is(throttle.Started, throttle.Ready, "at once")
	assert.Zero(t, r.doubts())
}

func TestAReadyOfARestartedKubeletIsBelievedAfterItTookItBack(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.says(false, -time.Second)
	r.kubeletStarts(30 * time.Second)
	r.look(31 * time.Second) // the report of the kubelet before comes late
	for range 2 {
		assert.Equal(t, 35*time.Second+window, r.says(true, 35*time.Second))
		r.is(throttle.Starting, "", "it may not have been probed")
	}
	assert.Equal(t, 1, r.doubts(), "that is said once")
	assert.Zero(t, r.says(false, 40*time.Second))
	r.is(throttle.Starting, "", "it is not ready")
	r.says(true, 100*time.Second)
	r.is(throttle.Started, throttle.Ready, "its probe has passed")
}

func TestAReadyThatARestartedKubeletKeepsToIsBelieved(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.kubeletStarts(30 * time.Second)
	again := r.says(true, 35*time.Second)
	r.look(again - time.Millisecond)
	r.is(throttle.Starting, "", "the false word may last so long")
	assert.Zero(t, r.look(again))
	r.is(throttle.Started, throttle.Ready, "it cannot last longer")
}

func TestAReadyOfTheKubeletBeforeIsBelieved(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.kubeletStarts(30 * time.Second)
	r.says(true, 28*time.Second)
	r.is(throttle.Started, throttle.Ready, "the kubelet before had probed it")
}

func TestAReadyOfARestartedKubeletThatHasLongWorkedIsBelieved(t *testing.T) {
	t.Parallel()
	for at, state := range map[time.Duration]throttle.State{
		40*time.Second + window: throttle.Starting, 42*time.Second + window: throttle.Started,
	} {
		r := newReporter(t)
		r.kubeletStarts(30 * time.Second)
		r.p.kubelet.asks(base.Add(40 * time.Second))
		r.says(false, -time.Second)
		r.says(true, at)
		r.is(state, throttle.Ready, "all pods are probed by a time after it began with them")
	}
}

func TestKubeletIsSeenToWorkByPodsOfTheAPIServer(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.kubeletStarts(-time.Hour)
	for source, works := range map[string]bool{"": false, "file": false, "api": true} {
		r.p.kubelet = r.proc.kubelet("kubelet")
		sandbox := &api.PodSandbox{Id: "s", Uid: "other", Namespace: "default", Name: "other", Annotations: map[string]string{annotationSource: source}}
		r.p.letIn(base, sandbox, podwatch.Pod{}, false)
		assert.Equal(t, works, !r.p.kubelet.now(base).works.IsZero(), "from %q", source)
	}
}

func TestAKubeletThatIsRestartedAgainIsDoubtedAgain(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.kubeletStarts(30 * time.Second)
	r.says(true, 35*time.Second)
	r.says(false, 40*time.Second)
	r.kubeletStarts(50 * time.Second)
	assert.Equal(t, 55*time.Second+window, r.says(true, 55*time.Second))
	r.is(throttle.Starting, "", "it may not have been probed by this one")
}

func TestAContainerThatTheRestartedKubeletStartedIsProbed(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.kubeletStarts(30 * time.Second)
	r.p.records["pod"].remove("c")
	r.containerStarts("new", 40*time.Second)
	r.pod.Containers["app"] = podwatch.Container{Kind: podwatch.App, Probed: true, Running: true, ID: "new"}
	r.says(true, 45*time.Second)
	r.is(throttle.Started, throttle.Ready, "its worker was there before it")
}

func TestOfAStartupProbeAloneTheSignsTellAfterARestartOfKubelet(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.pod.StartupOnly = true
	r.p.signs.cores = -1 // what it uses is never little
	r.kubeletStarts(30 * time.Second)
	again := r.says(true, 35*time.Second)
	for range 20 {
		at := again
		again = r.look(at)
		assert.Greater(t, again, at)
		r.is(throttle.Starting, "", "it computes")
	}
	r.p.signs.cores = 1e9
	r.look(again)
	r.is(throttle.Started, throttle.Inferred, "it uses little")
}

func TestAPodCountsAmongTheReadyWhenKubeletIsBelieved(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	found, err := crd.ParseAll([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: t1}\nspec: " + t1))
	require.NoError(t, err)
	r.p.keeper.SetPolicies(base, found.Policies)
	r.pod.Facts = &startpolicy.Facts{Labels: ofT1}
	ready := func() int { return r.p.limiter.Groups(base)[0].Ready }
	r.kubeletStarts(30 * time.Second)
	again := r.says(true, 35*time.Second)
	r.p.regroup(base.Add(35*time.Second), r.pod, false)
	assert.Zero(t, ready(), "it may not have been probed")
	r.look(again)
	assert.Equal(t, 1, ready())
}
