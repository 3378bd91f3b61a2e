package starts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// order is a node on which an app waits for others.
type order struct {
	*Starts
	t     *testing.T
	now   time.Time
	watch *asked
	node  string    // the UID of the Node object
	made  time.Time // when it was made
	kept  ReadyOnce
	logs  *logtest.Hook
	app   *throttle.Ticket
}

const afterAgent = "spec: {startAfter: [{daemonSet: kube-system/agent}]}"

// anOrder returns a daemon that has just begun to pace pods on an old node, with the pod app that waits.
func anOrder(t *testing.T, spec string, once ReadyOnce, change ...func(*order)) *order {
	t.Helper()
	o := &order{t: t, watch: &asked{pods: map[string]podwatch.Pod{}}, node: "node", made: time.Now().Add(-time.Hour)}
	for _, c := range change {
		c(o)
	}
	o.Starts = aStarts(func(opts *Options) {
		log, hook := logtest.NewNullLogger()
		opts.Log, o.logs, opts.Pods = log, hook, nil
		if o.watch != nil {
			opts.Pods = o.watch
		}
		opts.Node = func() (string, time.Time) { return o.node, o.made }
		opts.KeepReady = func(r ReadyOnce) { o.kept = r }
	})
	o.configured(t, spec, throttle.Settings{})
	o.now = time.Now()
	o.Begin(o.now, once)
	o.app = o.joins(o.now, throttle.Request{UID: "app"})
	o.app.Wait(o.now)
	return o
}

// pass lets time go by, and the loop look.
func (o *order) pass(d time.Duration) {
	o.now = o.now.Add(d)
	o.lookAfter(o.now)
	o.ledger.limiter.Advance(o.now)
}

// requireHeld checks whether the app waits, and the state of the first entry.
func (o *order) requireHeld(held bool, as observe.AfterState) {
	o.t.Helper()
	o.pass(0)
	require.Equal(o.t, []any{held, as}, []any{state(o.app) == throttle.Waiting, o.StartAfter()[0].State})
	require.Equal(o.t, as == observe.AfterWaiting, !o.StartAfter()[0].Until.IsZero())
}

// sandbox makes the sandbox of a pod with a container that runs from now on.
func (o *order) sandbox(namespace, name string, labels map[string]string) {
	o.locked(func(l *ledger) {
		sandbox := &api.PodSandbox{Id: name, Uid: name, Namespace: namespace, Name: name, Labels: labels}
		p := l.atSandbox(sandbox)
		p.setSandbox(name)
		p.begins(o.now, &api.Container{Id: name, Name: "app", PodSandboxId: name})
		p.selected = o.selectors.Load().entriesOf(namespace, labels)
	})
}

// exits ends the container of a pod that sandbox made.
func (o *order) exits(namespace, name string) {
	o.locked(func(l *ledger) {
		ctr := &api.Container{Id: name, Name: "app", PodSandboxId: name, State: api.ContainerState_CONTAINER_STOPPED}
		l.atSandbox(&api.PodSandbox{Id: name, Uid: name, Namespace: namespace, Name: name}).ends(o.now, ctr, true)
	})
}

// agent returns kubelet's report of a pod of the DaemonSet, about the container of this ID.
func agent(ready bool, container string) podwatch.Pod {
	return podwatch.Pod{
		UID: "agent-abcde", Namespace: "kube-system", Name: "agent-abcde", DaemonSet: true, Like: podwatch.Like{Owner: "DaemonSet/agent"},
		ContainersReady: ready, Containers: map[string]podwatch.Container{"app": {Kind: podwatch.App, ID: container}},
	}
}

var template = map[string]string{"pod-template-generation": "1"}

func TestPodsWaitUntilADaemonSetIsReady(t *testing.T) {
	t.Parallel()
	o := anOrder(t, afterAgent, ReadyOnce{}, func(o *order) { o.watch.pods["agent-abcde"] = agent(true, "before-the-boot") })
	o.requireHeld(true, observe.AfterWaiting)
	require.Equal(t, throttle.Held{
		Reason: reasons.StartAfter, For: "kube-system/agent", Measured: 120, Threshold: 120, Until: o.now.Add(2 * time.Minute),
	}, o.Snapshot(o.now).Held)
	o.sandbox("kube-system", "agent-abcde", template)
	o.pass(time.Minute)
	o.requireHeld(true, observe.AfterWaiting) // the report is about another container
	o.watch.pods["agent-abcde"] = agent(false, "agent-abcde")
	o.requireHeld(true, observe.AfterWaiting)
	ready := agent(true, "agent-abcde")
	ready.Deleting = true
	o.watch.pods["agent-abcde"] = ready
	o.requireHeld(true, observe.AfterWaiting) // it ends
	o.watch.pods["agent-abcde"] = agent(true, "agent-abcde")
	o.requireHeld(false, observe.AfterReady)
	require.Equal(t, ReadyOnce{Node: "node", Entries: []string{"kube-system/agent"}}, o.kept)

	o.watch.pods["agent-abcde"] = agent(false, "agent-abcde")
	o.pass(time.Second)
	require.Empty(t, o.Snapshot(o.now).Held, "it was ready once")
}

func TestADaemonSetWithoutAPodOnTheNodeHoldsNothing(t *testing.T) {
	t.Parallel()
	o := anOrder(t, afterAgent, ReadyOnce{})
	o.requireHeld(false, observe.AfterAbsent)

	young := anOrder(t, afterAgent, ReadyOnce{}, func(o *order) { o.made = time.Now() })
	young.requireHeld(true, observe.AfterWaiting) // its pods may not be made yet
	young.pass(30 * time.Second)
	young.requireHeld(false, observe.AfterAbsent)

	unlisted := anOrder(t, afterAgent, ReadyOnce{}, func(o *order) { o.watch.away = true })
	unlisted.pass(time.Hour) // kubelet has no pods yet
	unlisted.sandbox("default", "static", nil)
	unlisted.pass(119 * time.Second)
	unlisted.requireHeld(true, observe.AfterWaiting)
	unlisted.pass(time.Second)
	unlisted.requireHeld(false, observe.AfterTimedOut)
}

func TestPodsStartWithoutADaemonSetThatDoesNotBecomeReady(t *testing.T) {
	t.Parallel()
	o := anOrder(t, "spec: {startAfter: [{daemonSet: kube-system/agent, timeout: 1m}, {daemonSet: kube-system/other, timeout: 3m}]}", ReadyOnce{}, func(o *order) {
		o.watch.pods["agent-abcde"] = agent(false, "")
		other := agent(false, "")
		other.UID, other.Like.Owner = "other", "DaemonSet/other"
		o.watch.pods["other"] = other
	})
	require.Equal(t, "kube-system/agent, kube-system/other", o.Snapshot(o.now).Held.For)
	o.pass(time.Minute)
	require.Equal(t, "kube-system/other", o.Snapshot(o.now).Held.For)
	spec := o.Config().Spec
	spec.StartAfter = slices.Clone(spec.StartAfter)
	spec.StartAfter[1].Timeout = new(v1alpha1.Duration("2m"))
	o.Configure(o.now, crd.Effective{Origin: crd.OriginFile, Spec: spec}, throttle.Settings{}) // it keeps its time
	o.requireHeld(true, observe.AfterTimedOut)
	o.pass(time.Minute)
	o.requireHeld(false, observe.AfterTimedOut)
	o.pass(time.Minute)
	says := 0
	for _, e := range o.logs.AllEntries() {
		if e.Data["state"] == string(observe.AfterTimedOut) {
			says++
		}
	}
	require.Equal(t, 2, says, "once for each")
	require.Empty(t, o.kept.Entries)
}

// Without the API server, only the runtime tells whose pod it is.
func TestADaemonSetIsKnownByTheRuntimeWhileTheAPIServerIsAway(t *testing.T) {
	t.Parallel()
	o := anOrder(t, afterAgent, ReadyOnce{}, func(o *order) { o.watch.away, o.node = true, "" })
	o.sandbox("default", "agent-abcde", template)
	o.sandbox("kube-system", "agent-abcdf", nil)
	o.sandbox("kube-system", "agent-too-abcde", template)
	o.sandbox("kube-system", "agent-a-cde", template)
	o.pass(40 * time.Second)
	o.requireHeld(true, observe.AfterWaiting)
	o.sandbox("kube-system", "agent-abcdg", template)
	o.pass(29 * time.Second)
	o.requireHeld(true, observe.AfterWaiting) // it has not run for long
	o.pass(time.Second)
	o.requireHeld(false, observe.AfterReady)
	require.Empty(t, o.kept.Entries)
	o.exits("kube-system", "agent-abcdg")
	o.pass(time.Second)
	o.requireHeld(false, observe.AfterReady) // nothing says that it was not ready
}

// Without an API server, nothing will say more than the node's own signs.
func TestAStandaloneDaemonRemembersWhatSeemedReady(t *testing.T) {
	t.Parallel()
	o := anOrder(t, afterAgent, ReadyOnce{}, func(o *order) { o.watch, o.node = nil, "" })
	o.sandbox("kube-system", "agent-abcde", template)
	o.pass(30 * time.Second)
	o.requireHeld(false, observe.AfterReady)
	require.Equal(t, []string{"kube-system/agent"}, o.kept.Entries)
	o.exits("kube-system", "agent-abcde")
	o.pass(time.Second)
	o.requireHeld(false, observe.AfterReady)
}

// At the boot of a cluster, API servers come and go. An agent that runs and is not ready must not count as ready for the
// rest of the boot by that.
func TestAWatchThatBreaksOffMakesNoPodReady(t *testing.T) {
	t.Parallel()
	o := anOrder(t, afterAgent, ReadyOnce{}, func(o *order) { o.watch.pods["agent-abcde"] = agent(false, "agent-abcde") })
	o.sandbox("kube-system", "agent-abcde", template)
	o.pass(time.Minute)
	o.now = o.now.Add(20 * time.Second) // since the last look
	o.watch.away, o.watch.lost = true, o.now
	o.pass(4 * time.Second)
	o.requireHeld(true, observe.AfterWaiting) // the watch may be back soon
	o.watch.away = false
	o.requireHeld(true, observe.AfterWaiting)
	o.watch.away, o.watch.lost = true, o.now
	o.pass(5 * time.Second)
	o.requireHeld(false, observe.AfterReady) // by the node's own signs
	require.Empty(t, o.kept.Entries)
	require.True(t, o.ledger.after.wakes(), "a report may say that it is not ready")
	o.watch.away = false
	o.pass(0)
	require.Equal(t, "kube-system/agent", o.Snapshot(o.now).Held.For)
	o.pass(time.Minute)
	o.requireHeld(false, observe.AfterTimedOut) // which counts from when it held first, as ever
}

func TestTheNameOfADaemonSetMayBeCutOff(t *testing.T) {
	t.Parallel()
	const long = "a23456789-123456789-123456789-123456789-123456789-123456789-123"
	o := anOrder(t, "spec: {startAfter: [{daemonSet: kube-system/"+long+"}]}", ReadyOnce{}, func(o *order) { o.watch.away = true })
	o.sandbox("kube-system", long[:58]+"abcde", template)
	o.pass(30 * time.Second)
	o.requireHeld(false, observe.AfterReady)
}

func TestPodsWaitForTheOnesThatASelectorSelects(t *testing.T) {
	t.Parallel()
	const spec = "spec: {startAfter: [{namespace: vault, podSelector: {matchLabels: {app: agent}}}]}"
	o := anOrder(t, spec, ReadyOnce{}, func(o *order) { o.watch.away = true })
	o.sandbox("default", "p1", map[string]string{"app": "agent"})
	o.sandbox("vault", "p2", map[string]string{"app": "other"})
	o.pass(30 * time.Second)
	o.requireHeld(true, observe.AfterWaiting)
	o.sandbox("vault", "p3", map[string]string{"app": "agent"})
	o.pass(30 * time.Second)
	o.requireHeld(false, observe.AfterReady)

	online := anOrder(t, spec, ReadyOnce{}, func(o *order) { o.watch.pods["p2"] = podwatch.Pod{UID: "p2", Namespace: "vault"} })
	online.requireHeld(true, observe.AfterWaiting) // its labels were not read yet
	selected := func(labels map[string]string) {
		online.watch.pods["p2"] = podwatch.Pod{
			UID: "p2", Namespace: "vault", Selected: online.watch.selects("vault", labels), ContainersReady: true,
			Containers: map[string]podwatch.Container{"app": {Kind: podwatch.App, ID: "p2"}},
		}
	}
	selected(map[string]string{"app": "agent"})
	online.requireHeld(true, observe.AfterWaiting)
	online.sandbox("vault", "p2", nil)
	online.requireHeld(false, observe.AfterReady)

	online.watch.selects = nil
	online.configured(t, strings.Replace(spec, "{", "{mode: Disabled, ", 1), throttle.Settings{})
	require.Empty(t, online.StartAfter())
	online.configured(t, spec, throttle.Settings{})
	online.requireHeld(false, observe.AfterReady)
	require.Nil(t, online.watch.selects, "the watch selects as before, and need not list all pods anew")

	none := anOrder(t, spec, ReadyOnce{})
	require.Empty(t, none.watch.selects("default", map[string]string{"app": "agent"}))
	none.requireHeld(false, observe.AfterAbsent)
	none.configured(t, "spec: {}", throttle.Settings{})
	require.Nil(t, none.watch.selects)
}

// A daemon that is restarted makes no pod wait for what was ready in this boot, unless the node is a new one.
func TestWhatWasReadyOnceHoldsNothingUntilTheNextNode(t *testing.T) {
	t.Parallel()
	broken := func(o *order) { o.watch.pods["agent-abcde"] = agent(false, "") }
	once := ReadyOnce{Node: "node", Entries: []string{"kube-system/agent"}}
	o := anOrder(t, afterAgent, once, broken)
	o.requireHeld(false, observe.AfterReady)

	unknown := anOrder(t, afterAgent, once, broken, func(o *order) { o.node, o.watch.away = "", true })
	unknown.requireHeld(false, observe.AfterReady)

	anew := anOrder(t, afterAgent, ReadyOnce{Node: "another", Entries: once.Entries}, broken)
	anew.requireHeld(true, observe.AfterWaiting)

	// The look that finds the node to be new judges its pods.
	o.watch.pods["agent-abcde"] = agent(true, "agent-abcde")
	o.sandbox("kube-system", "agent-abcde", template)
	o.node = "another"
	o.requireHeld(false, observe.AfterReady)
	require.Equal(t, ReadyOnce{Node: "another", Entries: once.Entries}, o.kept)
}

// An entry may leave the configuration in force for a while, as with the mode Disabled, and may come to it late.
func TestWhatWasReadyOnceHoldsNothingAfterTheLimitsWereOff(t *testing.T) {
	t.Parallel()
	broken := agent(false, "agent-abcde")
	o := anOrder(t, afterAgent, ReadyOnce{}, func(o *order) { o.watch.pods["agent-abcde"] = agent(true, "agent-abcde") })
	o.sandbox("kube-system", "agent-abcde", template)
	o.requireHeld(false, observe.AfterReady)
	o.watch.pods["agent-abcde"] = broken
	for _, off := range []string{"spec: {mode: Disabled, startAfter: [{daemonSet: kube-system/agent}]}", "spec: {}"} {
		o.configured(t, off, throttle.Settings{})
		require.Empty(t, o.StartAfter())
		o.configured(t, afterAgent, throttle.Settings{})
		o.requireHeld(false, observe.AfterReady)
	}

	late := anOrder(t, "spec: {}", o.kept, func(o *order) { o.watch.pods["agent-abcde"] = broken })
	late.configured(t, afterAgent, throttle.Settings{})
	late.requireHeld(false, observe.AfterReady)
	other := agent(true, "other")
	other.UID, other.Like.Owner = "other", "DaemonSet/other"
	late.watch.pods["other"] = other
	late.configured(t, "spec: {startAfter: [{daemonSet: kube-system/other}]}", throttle.Settings{})
	late.sandbox("kube-system", "other", template)
	late.requireHeld(false, observe.AfterReady)
	require.Equal(t, ReadyOnce{Node: "node", Entries: []string{"kube-system/agent", "kube-system/other"}}, late.kept)
}

func TestAnEntryHoldsAgainOnlyIfAsked(t *testing.T) {
	t.Parallel()
	o := anOrder(t, "spec: {startAfter: [{daemonSet: kube-system/agent, timeout: 1m, again: true}]}", ReadyOnce{}, func(o *order) { o.watch.pods["agent-abcde"] = agent(true, "agent-abcde") })
	o.sandbox("kube-system", "agent-abcde", template)
	o.requireHeld(false, observe.AfterReady)
	o.pass(time.Hour)
	o.watch.pods["agent-abcde"] = agent(false, "agent-abcde")
	o.pass(0)
	require.InDelta(t, 60, o.Snapshot(o.now).Held.Measured, 0)
	o.pass(time.Minute)
	o.requireHeld(false, observe.AfterTimedOut)
}

// The watch reads the labels of all pods again for a new selector, up to half a minute later.
func TestANewSelectorHoldsNothingForTheOthers(t *testing.T) {
	t.Parallel()
	const agent = "{namespace: vault, podSelector: {matchLabels: {app: agent}}, again: true}"
	const another = "{namespace: vault, podSelector: {matchLabels: {app: another}}}"
	o := anOrder(t, "spec: {startAfter: ["+agent+"]}", ReadyOnce{})
	o.sandbox("vault", "p", nil)
	ready := podwatch.Pod{
		UID: "p", Namespace: "vault", Selected: o.watch.selects("vault", map[string]string{"app": "agent"}), ContainersReady: true,
		Containers: map[string]podwatch.Container{"app": {Kind: podwatch.App, ID: "p"}},
	}
	o.watch.pods["p"] = ready
	o.requireHeld(false, observe.AfterReady)
	o.configured(t, "spec: {startAfter: ["+agent+", "+another+"]}", throttle.Settings{})
	ready.SelectedBefore = true
	o.watch.pods["p"] = ready
	o.pass(0)
	require.Equal(t, "vault (app=another)", o.Snapshot(o.now).Held.For, "the pod may be one of it")
	ready.Selected, ready.SelectedBefore = o.watch.selects("vault", map[string]string{"app": "agent"}), false
	o.watch.pods["p"] = ready
	o.requireHeld(false, observe.AfterReady)
	require.Empty(t, o.Snapshot(o.now).Held)
}

func TestTheModesSayWhetherPodsWaitForOthers(t *testing.T) {
	t.Parallel()
	off := anOrder(t, "spec: {mode: Disabled, startAfter: [{daemonSet: kube-system/agent}]}", ReadyOnce{}, func(o *order) { o.watch.away = true })
	off.pass(0)
	assert.Equal(t, throttle.Starting, state(off.app))

	shadow := anOrder(t, "spec: {mode: Shadow, startAfter: [{daemonSet: kube-system/agent}]}", ReadyOnce{}, func(o *order) { o.watch.away = true })
	web := &api.PodSandbox{Id: "web", Uid: "web", Namespace: "default", Name: "web"}
	d := shadow.Container(shadow.now, web, &api.Container{Id: "c", Name: "app", PodSandboxId: "web"}, podwatch.Pod{}, HookTerms{})
	assert.Equal(t, []any{true, reasons.StartAfter}, []any{d.Decision.Granted, d.Decision.Reason})
	assert.Equal(t, throttle.Waiting, state(shadow.ledger.limiter.Lookup("web")))

	// A change to the mode Disabled ends the wait.
	shadow.configured(t, "spec: {mode: Disabled, startAfter: [{daemonSet: kube-system/agent}]}", throttle.Settings{})
	assert.Equal(t, throttle.Starting, state(shadow.app))
}

// The limits of the same configuration must not admit a pod before it waits for others.
func TestANewEntryHoldsBeforeTheNewLimitsAdmit(t *testing.T) {
	t.Parallel()
	o := anOrder(t, "spec: {}", ReadyOnce{}, func(o *order) { o.watch.away = true })
	o.ledger.limiter.Configure(o.now, throttle.Settings{MaxConcurrent: 1})
	late := o.joins(o.now, throttle.Request{UID: "late"})
	late.Wait(o.now)
	require.Equal(t, throttle.Waiting, state(late))
	o.configured(t, afterAgent, throttle.Settings{})
	require.Equal(t, throttle.Waiting, state(late))
	require.Equal(t, v1alpha1.DefaultStartAfterTimeout, time.Until(o.StartAfter()[0].Until).Round(time.Minute))
}
