package observe

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// unforeseen is an event whose report panics.
type unforeseen struct{ Pod }

func (unforeseen) report(*Observer) { panic("broken") }

func TestAReportThatPanicsIsCaught(t *testing.T) {
	t.Parallel()
	log, logged := logtest.NewNullLogger()
	o := New(Options{Log: log, Events: &Recorder{}, Nodes: func() int { return 1 }})
	require.NotPanics(t, func() { o.Report(unforeseen{Pod{"u1", "ns/web"}}) })
	assert.Equal(t, "caught a panic in unforeseen for pod ns/web, the daemon goes on: broken", logged.LastEntry().Message)
	assert.Equal(t, "u1", logged.LastEntry().Data["pod_uid"])
	require.NotPanics(t, func() { o.Report(unforeseen{}) })
	assert.Equal(t, "caught a panic in unforeseen, the daemon goes on: broken", logged.LastEntry().Message)
	assert.InDelta(t, 2, testutil.ToFloat64(o.metrics.panics.WithLabelValues("unforeseen")), 0)

	require.NotPanics(t, func() {
		defer o.CaughtPod("review", "u1", "ns/web")
		panic("broken")
	})
	assert.Equal(t, "caught a panic in review for pod ns/web, the daemon goes on: broken", logged.LastEntry().Message)

	o = New(Options{Log: log, Nodes: func() int { return 1 }}) // it cannot write events
	require.NotPanics(t, func() {
		o.Report(StartEvent{Pod: Pod{"u2", "ns/stuck"}, Event: throttle.Event{State: throttle.Started, Reason: reasons.Stuck, Time: time.Now()}})
	})
	assert.Equal(t, "caught a panic in StartEvent for pod ns/stuck, the daemon goes on: runtime error: invalid memory address or nil pointer dereference", logged.LastEntry().Message)
}

// everywhere collects what events cause.
type everywhere []string

// Levels implements logrus.Hook.
func (*everywhere) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook.
func (w *everywhere) Fire(e *logrus.Entry) error {
	line := fmt.Sprintf("log %s: %s", e.Level, e.Message)
	fields := make([]string, 0, len(e.Data))
	for name, value := range e.Data {
		fields = append(fields, fmt.Sprintf(" %s=%v", name, value))
	}
	slices.Sort(fields)
	*w = append(*w, line+strings.Join(fields, ""))
	return nil
}

// Pod implements EventWriter.
func (w *everywhere) Pod(uid, name, kind, reason, message string) {
	*w = append(*w, fmt.Sprintf("on pod %s %s: %s %s: %s", uid, name, kind, reason, message))
}

// Node implements EventWriter.
func (w *everywhere) Node(kind, reason, message string) {
	*w = append(*w, fmt.Sprintf("on node: %s %s: %s", kind, reason, message))
}

// counted adds the metrics that are not zero, and the histograms that are not empty.
func (w *everywhere) counted(t *testing.T, r *prometheus.Registry) {
	families, err := r.Gather()
	require.NoError(t, err)
	for _, family := range families {
		name, own := strings.CutPrefix(family.GetName(), "pod_pacemaker_")
		for _, m := range family.GetMetric() {
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
			if !own || value == 0 && m.GetHistogram().GetSampleCount() == 0 {
				continue
			}
			labels := ""
			for _, l := range m.GetLabel() {
				labels += " " + l.GetValue()
			}
			*w = append(*w, fmt.Sprintf("metric %s%s: %v", name, labels, value))
		}
	}
}

// Each kind of event causes what its type says, and nothing else.
func TestWhatEachEventCauses(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	of := func(state throttle.State, reason reasons.Reason) throttle.Event {
		return throttle.Event{State: state, Reason: reason, Time: now, Took: 3 * time.Second, Waiting: 2, Starting: 1}
	}
	adopted := func(state throttle.State, reason reasons.Reason) throttle.Event {
		e := of(state, reason)
		e.Admission = reasons.Adopted
		return e
	}
	web := Pod{"u1", "ns/web"}
	const pod = " pod_name=web pod_namespace=ns pod_uid=u1"
	waits := Waits{Made: Made{Pod: web, Sandbox: "s1"}, Decision: throttle.Decision{Reason: reasons.Queued, Held: throttle.Held{Reason: reasons.Queued, Measured: 4}, Ahead: 4}, Since: now, At: now.Add(time.Second)}
	inGate := waits
	inGate.Container = "c1"
	took := costs.Start{CPU: 2 * time.Second, Wall: 3 * time.Second}
	expected := costs.Cost{}
	expected.CPU.Mean = 4
	killed := took
	killed.Killed = true
	const learned = "log debug: learned what the start of pod ns/web took: 2s of CPU time in 3s basis=Owner cpu_ms=2000 disk_bytes=0 expected_cpu_ms=4000 idle_ms=0 killed=%v peak_cores=0" + pod + " waited_ms=0 wall_ms=3000"
	why := errors.New("it is absent")
	for _, c := range []struct {
		event  Event
		causes []string
	}{
		{StartEvent{Pod: web, Event: of(throttle.Waiting, "")}, []string{
			"log debug: pod ns/web joined the queue" + pod + " starting=1 waiting=2",
		}},
		{StartEvent{Pod: web, Event: of(throttle.Waiting, reasons.GateExpired), Container: "c1"}, []string{
			"log warning: the wait of pod ns/web in the gate ended without a turn: kubelet tries again, the pod keeps its place container_id=c1" + pod + " reason=GateExpired starting=1 waiting=2",
			"metric gate_expired_total: 1",
			"on pod u1 ns/web: Warning GateExpired: " + expiredText,
		}},
		{StartEvent{Pod: web, Event: of(throttle.Starting, reasons.WithinLimits)}, []string{
			"log info: start of pod ns/web admitted after 3s" + pod + " reason=WithinLimits starting=1 wait_ms=3000 waiting=2",
			"metric admissions_total WithinLimits: 1", "metric wait_seconds WithinLimits: 3",
		}},
		{StartEvent{Pod: web, Event: of(throttle.Starting, reasons.WithinLimits), Disabled: true}, []string{
			"log info: start of pod ns/web admitted after 3s" + pod + " reason=WithinLimits starting=1 wait_ms=3000 waiting=2",
			"metric admissions_total WithinLimits: 1", "metric unpaced_total Disabled: 1", "metric wait_seconds WithinLimits: 3",
		}},
		{StartEvent{Pod: web, Event: of(throttle.Starting, reasons.Exempt), Disabled: true}, []string{
			"log info: start of pod ns/web admitted after 3s: Exempt" + pod + " reason=Exempt starting=1 wait_ms=3000 waiting=2",
			"metric admissions_total Exempt: 1", "metric wait_seconds Exempt: 3",
		}},
		{StartEvent{Pod: web, Event: of(throttle.Starting, reasons.ByHand)}, []string{
			"log warning: start of pod ns/web admitted after 3s: ByHand: 'pod-pacemaker admit' let it start, whatever the limits say" + pod + " reason=ByHand starting=1 wait_ms=3000 waiting=2",
			"metric admissions_total ByHand: 1", "metric wait_seconds ByHand: 3",
			"on pod u1 ns/web: Normal StartAdmitted: Admitted over the limit after 3s: ByHand",
		}},
		{StartEvent{Pod: web, Event: of(throttle.Started, reasons.Ready)}, []string{
			"log info: start of pod ns/web ended after 3s: Ready" + pod + " reason=Ready start_ms=3000 starting=1 waiting=2",
			"metric start_seconds Ready: 3",
		}},
		{StartEvent{Pod: web, Event: adopted(throttle.Started, reasons.Ready)}, []string{
			"log info: start of pod ns/web, under way when the daemon learned of it, ended: Ready" + pod + " reason=Ready starting=1 waiting=2",
		}},
		{StartEvent{Pod: web, Event: adopted(throttle.Started, reasons.Stuck)}, []string{
			"log warning: start of pod ns/web is stuck after 3s and no longer counts" + pod + " reason=Stuck start_ms=3000 starting=1 waiting=2",
			"metric start_seconds Stuck: 3",
			"on pod u1 ns/web: Warning StartStuck: Not ready 3s after it was admitted; the start no longer counts, and other pods may start",
		}},
		{StartEvent{Pod: web, Event: of(throttle.Started, reasons.Stuck)}, []string{
			"log warning: start of pod ns/web is stuck after 3s and no longer counts" + pod + " reason=Stuck start_ms=3000 starting=1 waiting=2",
			"metric start_seconds Stuck: 3",
			"on pod u1 ns/web: Warning StartStuck: Not ready 3s after it was admitted; the start no longer counts, and other pods may start",
		}},
		{StartEvent{Pod: web, Event: throttle.Event{State: throttle.Gone, Reason: reasons.Deleted, Time: now}}, []string{
			"log info: pod ns/web left the queue: Deleted" + pod + " reason=Deleted starting=0 waiting=0",
		}},
		{ShadowEvent{web, of(throttle.Starting, reasons.WithinLimits), reasons.Rate}, []string{
			"log info: pod ns/web would have waited for 3s, but the mode is Shadow: Rate" + pod + " reason=Rate starting=1 wait_ms=3000 waiting=2",
			"metric shadow_wait_seconds Rate: 3",
		}},
		{ShadowEvent{web, of(throttle.Started, reasons.Stuck), reasons.Rate}, []string{
			"log debug: start of pod ns/web would have ended after 3s, but the mode is Shadow: Stuck" + pod + " reason=Stuck start_ms=3000 starting=1 waiting=2",
		}},
		{ShadowEvent{web, of(throttle.Waiting, ""), reasons.Rate}, nil},
		{Unpaced{Reason: reasons.Adopted}, []string{"metric unpaced_total Adopted: 1"}},
		{Unpaced{Reason: Disabled}, []string{"metric unpaced_total Disabled: 1"}},
		{Unpaced{Pod: web, Reason: Shadow, HeldBy: reasons.Rate}, []string{
			"log info: pod ns/web would wait, but the mode is Shadow: Rate" + pod + " reason=Rate", "metric unpaced_total Shadow: 1",
		}},
		{Unpaced{Pod: web, Reason: NotAsked}, []string{
			"log warning: pod ns/web: it started without a decision of the daemon; its start counts from now on" + pod + " reason=NotAsked",
			"metric unpaced_total NotAsked: 1",
			"on pod u1 ns/web: Warning StartUnpaced: NotAsked: it started without a decision of the daemon; its start counts from now on",
		}},
		{Unpaced{Pod: web, Reason: Panic}, []string{
			"log warning: pod ns/web: a handler of the daemon failed: the pod starts unpaced" + pod + " reason=Panic",
			"metric unpaced_total Panic: 1",
			"on pod u1 ns/web: Warning StartUnpaced: Panic: a handler of the daemon failed: the pod starts unpaced",
		}},
		{Learned{web, took, "Owner", expected}, []string{
			fmt.Sprintf(learned, false),
			"metric start_cost_ratio Owner: 0.5", "metric start_cpu_seconds_total Owner: 2", "metric start_expected_cpu_seconds_total Owner: 4",
		}},
		{Learned{web, killed, "Owner", expected}, []string{fmt.Sprintf(learned, true)}},
		{Unmeasured{web, why}, []string{
			"log warning: cannot read what pod ns/web uses: it counts as making progress, and nothing is learned of its start error=it is absent" + pod,
		}},
		{waits, []string{"log info: pod ns/web waits in the waiting room, place 5: Queued (4 ahead) held=4 ahead place=5" + pod + " reason=Queued sandbox_id=s1 wait_ms=1000"}},
		{inGate, []string{"log info: pod ns/web waits in the gate, place 5: Queued (4 ahead) container_id=c1 held=4 ahead place=5" + pod + " reason=Queued sandbox_id=s1 wait_ms=1000"}},
		{Refusal{waits, time.Second, false}, []string{
			"log info: pod ns/web is refused at the sandbox until kubelet tries again, place 5: Queued (4 ahead) at=sandbox held=4 ahead place=5" + pod + " reason=Queued sandbox_id=s1 wait_ms=1000",
			"metric refusal_cpu_seconds_total: 1", "metric refusals_total sandbox Queued: 1",
		}},
		{Refusal{inGate, time.Second, true}, []string{
			"log info: pod ns/web is refused at the container and does not start, place 5: Queued (4 ahead) at=container container_id=c1 held=4 ahead place=5" + pod + " reason=Queued sandbox_id=s1 wait_ms=1000",
			"metric refusal_cpu_seconds_total: 1", "metric refusals_total container Queued: 1",
		}},
		{LeftRoom{HungUp, 2 * time.Second}, []string{"metric room_wait_seconds HungUp: 2"}},
		{GateGivenUp{Pod{Name: "ns/web"}, "c1", "hooks do not run"}, []string{
			"log warning: no container waits in the gate for a while, and containers are refused instead: a container of pod ns/web failed to use it: hooks do not run container_id=c1 no_gate=hooks do not run pod_name=web pod_namespace=ns",
			"on node: Warning GateGivenUp: Containers are refused for a while instead of waiting in the gate: hooks do not run",
		}},
		{RuntimeLost{why}, []string{"on node: Warning RuntimeDisconnected: The connection to the container runtime is lost, pods start unpaced until it is back: it is absent"}},
		{RuntimeBack{}, []string{"on node: Normal RuntimeConnected: Connected to the container runtime again: pods are paced"}},
		{Made{Pod: web, Sandbox: "s1"}, []string{
			"log debug: pod ns/web: the runtime makes a sandbox, which does not wait" + pod + " sandbox_id=s1",
		}},
		{Made{Pod: web, Sandbox: "s1", Container: "c1"}, []string{
			"log debug: pod ns/web: the runtime makes a container, which does not wait container_id=c1" + pod + " sandbox_id=s1",
		}},
		{HandlerCall{"StopContainer", time.Second}, []string{"metric handler_seconds StopContainer: 1"}},
		{HandlerHold{time.Second}, []string{"metric handler_hold_seconds_total: 1"}},
		{Shutdown{true, 7}, []string{"log warning: the node is being shut down: no pod waits in the gate any more, and pods that would have to wait are refused waiting=7"}},
		{Shutdown{false, 7}, []string{"log info: the node is not shut down after all: pods wait as before"}},
		{NodePressure{true}, []string{"log warning: the node is short of memory, disk or process IDs: no pod waits in the gate any more, so that kubelet can evict it; pods are refused until this is over"}},
		{NodePressure{false}, []string{"log info: the node is no longer short of memory, disk or process IDs: pods may wait in the gate again"}},
		{StartAfter{"kube-system/cilium", AfterWaiting, 0}, []string{"log info: StartAfter: kube-system/cilium is not ready: pods wait for it start_after=kube-system/cilium state=Waiting"}},
		{StartAfter{"kube-system/cilium", AfterReady, 20 * time.Second}, []string{"log info: StartAfter: kube-system/cilium is ready after 20s start_after=kube-system/cilium state=Ready"}},
		{StartAfter{"kube-system/cilium", AfterAbsent, 0}, []string{"log info: StartAfter: kube-system/cilium has no pod on this node, and holds no pod start_after=kube-system/cilium state=Absent"}},
		{StartAfter{"kube-system/cilium", AfterTimedOut, 2 * time.Minute}, []string{
			"log warning: StartAfter: kube-system/cilium is not ready after 2m0s: pods start without it start_after=kube-system/cilium state=TimedOut",
			"on node: Warning StartAfterTimedOut: kube-system/cilium is not ready after 2m0s: pods start without it",
		}},
		{SignalBlind{throttle.SignalLoad, "its limit is open", why}, []string{
			"log warning: the signal load cannot be measured: its limit is open error=it is absent signal=load",
			"on node: Warning SignalBlind: The signal load cannot be measured, its limit is open: it is absent",
		}},
		{SignalBlind{throttle.SignalLoad, "its limit holds", nil}, []string{
			"log info: the signal load is measured again: its limit holds signal=load",
			"on node: Normal SignalMeasured: The signal load is measured again, its limit holds",
		}},
		{Configured{Name: "test", Origin: "API", Generation: 3, Mode: v1alpha1.ModeEnforce, Limits: "2 at a time"}, []string{
			"log info: configuration in force: test: 2 at a time config=test generation=3 limits=2 at a time mode=Enforce origin=API",
			"metric config_generation test API: 3",
		}},
		{Configured{Name: "seen", Origin: "API", Generation: 2, Mode: v1alpha1.ModeShadow, Limits: "2 at a time"}, []string{
			"log warning: configuration in force: seen: 2 at a time; no pod waits, because the mode is Shadow config=seen generation=2 limits=2 at a time mode=Shadow origin=API",
			"metric config_generation seen API: 2",
		}},
		{Configured{Origin: "None", Mode: v1alpha1.ModeEnforce, Limits: "none"}, []string{
			"log info: no configuration is in force: no pod waits config= generation=0 limits=none mode=Enforce origin=None",
		}},
		{Configured{Name: "some", Origin: "API", Generation: 1, Mode: v1alpha1.ModeDisabled, Limits: "none", OffUntil: now}, []string{
			"log warning: switched off on this node until 1970-01-01T00:16:40Z: no pod waits ('pod-pacemaker on' ends that) config=some generation=1 limits=none mode=Disabled origin=API",
			"metric config_generation some API: 1",
		}},
		{Configured{Name: "all-off", Origin: "API", Generation: 1, Mode: v1alpha1.ModeDisabled, Limits: "none"}, []string{
			"log warning: configuration in force: all-off: no pod waits, because the mode is Disabled config=all-off generation=1 limits=none mode=Disabled origin=API",
			"metric config_generation all-off API: 1",
		}},
		{PolicyChanges{policies.Changes{Faults: map[string]string{"a": "no labels"}, Evaluated: []string{"b"}, Gone: []string{"c"}, Overridden: []string{"d"}}}, []string{
			"log info: StartPolicy b can be evaluated again policy=b",
			"log info: StartPolicy c, which could not be evaluated, is gone policy=c",
			"log info: a temporary override of StartPolicy d began or ended policy=d",
			"log warning: StartPolicy a cannot be evaluated, and holds no pod: no labels policy=a reason=no labels",
			"on node: Warning PolicyNotEvaluated: StartPolicy a holds no pod: no labels",
		}},
		{ClusterPolicies{[]string{"a", "b"}, why}, []string{
			"log warning: the API server cannot be used: the policies a, b hold no pod error=it is absent",
			"on node: Warning StartPoliciesOpened: the StartPolicies a, b hold no pod: it is absent",
		}},
		{RegistrationDelayed{"ListingTooLarge", why}, []string{"on node: Warning ListingTooLarge: it is absent"}},
		{RegistersDuringStop{}, []string{"metric registrations_during_stop_total: 1"}},
		{LargeEnvironment{Made: Made{Pod: web, Sandbox: "s1", Container: "c1"}, Bytes: 300 << 10, Refused: true}, []string{
			"log warning: pod ns/web: the container has 300 KiB of environment and other settings; containerd may end when it lists several of such a size to a plugin, so the daemon does not register beside them; it is refused bytes=307200 container_id=c1" + pod + " sandbox_id=s1",
			"metric large_environments_total: 1",
			"on pod u1 ns/web: Warning LargeEnvironment: The container has 300 KiB of environment and other settings; containerd may end when it lists several of such a size to a plugin, so the daemon does not register beside them; it is refused",
		}},
		{ClusterPolicies{}, []string{
			"log info: the policies of the scope Cluster hold pods again",
			"on node: Normal StartPoliciesClosed: the StartPolicies of the scope Cluster hold again",
		}},
	} {
		var caused everywhere
		log := discard()
		log.SetLevel(logrus.DebugLevel)
		log.AddHook(&caused)
		o := New(Options{Log: log, Events: &caused, Nodes: func() int { return 1 }})
		o.Report(c.event)
		caused.counted(t, o.Registry())
		slices.Sort(caused)
		assert.Equal(t, c.causes, []string(caused), "%T", c.event)
	}
}

// Nearly each start would bring the same warning.
func TestItIsWarnedOnceOfARightThatTheDaemonLacks(t *testing.T) {
	t.Parallel()
	log, logged := logtest.NewNullLogger()
	o := New(Options{Log: log, Events: &Recorder{}, Nodes: func() int { return 1 }})
	forbidden := fmt.Errorf("I/O of process 7: %w", fs.ErrPermission)
	for _, e := range []Unmeasured{{Pod{Name: "ns/a"}, forbidden}, {Pod{Name: "ns/b"}, forbidden}, {Pod{Name: "ns/c"}, errors.New("it is absent")}} {
		o.Report(e)
	}
	const text = "cannot read what pod %s uses: it counts as making progress, and nothing is learned of its start"
	var said []string
	for _, e := range logged.AllEntries() {
		said = append(said, e.Message)
	}
	assert.Equal(t, []string{
		fmt.Sprintf(text, "ns/a") + "; so it is with most pods: the daemon needs CAP_SYS_PTRACE (processIO=true of the chart, deploy/systemd/process-io.conf of the unit)",
		fmt.Sprintf(text, "ns/c"),
	}, said, "at the level info")
}
