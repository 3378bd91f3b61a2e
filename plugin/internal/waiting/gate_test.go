package waiting

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

func TestPodsThatMayWaitInTheGate(t *testing.T) {
	t.Parallel()
	hook := filepath.Join(t.TempDir(), "hook")
	require.NoError(t, os.WriteFile(hook, nil, 0o700))
	pod := func(policy string) podwatch.Pod {
		return podwatch.Pod{UID: "u", RestartPolicy: policy, Containers: map[string]podwatch.Container{"c": {Kind: podwatch.App}}}
	}
	ofAJob := pod("OnFailure")
	ofAJob.Like.Owner = "Job/j"
	never := pod("Always")
	never.Containers["c"] = podwatch.Container{Kind: podwatch.App, RestartPolicy: "Never"}
	for _, c := range []struct {
		why    string
		use    GateUse
		pod    podwatch.Pod
		usable bool
	}{
		{"restarted always", GateAuto, pod("Always"), true},
		{"restarted on failure", GateAuto, pod("OnFailure"), true},
		{"restarted on failure, which a Job counts", GateAuto, ofAJob, false},
		{"never restarted", GateAuto, pod("Never"), false},
		{"a container that is never restarted", GateAuto, never, false},
		{"not known", GateAuto, podwatch.Pod{}, false},
		{"not known, but always", GateAlways, podwatch.Pod{}, true},
		{"never restarted, though always", GateAlways, pod("Never"), false},
		{"no gate", GateNever, pod("Always"), false},
	} {
		g := aGate(c.use, hook)
		g.runsOn("2.4.2")
		assert.Equal(t, c.usable, g.mayTake("u", "", c.pod, false), c.why)
	}
}

// A client of the runtime need not give a pod a UID, and its namespace and name then stand for it.
func TestAPodThatAHookCannotNameDoesNotWaitInTheGate(t *testing.T) {
	t.Parallel()
	hook := filepath.Join(t.TempDir(), "hook")
	require.NoError(t, os.WriteFile(hook, nil, 0o700))
	g := aGate(GateAlways, hook)
	g.runsOn("2.4.2")
	for uid, usable := range map[string]bool{
		"default/" + strings.Repeat("n", 120): true,
		"default/" + strings.Repeat("n", 121): false,
		"default/with a space":                false,
	} {
		assert.Equal(t, usable, g.mayTake(uid, "", podwatch.Pod{}, false), uid)
	}
}

func TestTheGateIsNotUsedUntilTheRuntimeIsKnown(t *testing.T) {
	t.Parallel()
	hook := filepath.Join(t.TempDir(), "hook")
	require.NoError(t, os.WriteFile(hook, nil, 0o700))
	g := aGate(GateAuto, hook)
	assert.Contains(t, g.Off(), "not known yet")
	g.runsOn("2.2.5")
	assert.Contains(t, g.Off(), "holds up statistics")
	g.runsOn("2.4.2")
	assert.Empty(t, g.Off())
	require.NoError(t, os.Remove(hook))
	assert.Contains(t, g.Off(), "cannot be used")
	assert.Contains(t, aGate(GateAuto, "").Off(), "--gate-path")
}

func TestAlwaysUsesTheGateInOldSandboxesUnlessOtherContainersRun(t *testing.T) {
	t.Parallel()
	hook := filepath.Join(t.TempDir(), "hook")
	require.NoError(t, os.WriteFile(hook, nil, 0o700))
	pod := podwatch.Pod{UID: "u", RestartPolicy: "Always", Containers: map[string]podwatch.Container{"c": {Kind: podwatch.App}}}
	for _, c := range []struct {
		use          GateUse
		version      string
		beside       bool
		handler      string
		usable, seen bool
	}{
		{use: GateAuto, version: "2.4.2", seen: true, usable: true},
		{use: GateAuto, version: "2.4.2", seen: true, beside: true, usable: true},
		{use: GateAuto, version: "2.4.2", seen: false},
		{use: GateAuto, version: "2.2.5", seen: true},
		{use: GateAuto, version: "2.4.2", seen: true, handler: "kata"},
		{use: GateAlways, version: "2.4.2", seen: true, handler: "kata", usable: true},
		{use: GateAlways, version: "2.2.5", seen: true, usable: true},
		{use: GateAlways, version: "2.2.5", seen: true, beside: true},
		{use: GateAlways, version: "2.4.2", seen: false, usable: true},
		{use: GateAlways, version: "2.4.2", seen: false, beside: true},
	} {
		g := aGate(c.use, hook)
		g.runsOn(c.version)
		noGate := starts.Unseen
		if c.seen {
			noGate = g.runtime.Load().bars(&api.PodSandbox{Id: "s", RuntimeHandler: c.handler}, "/nowhere")
		}
		assert.Equal(t, c.usable, g.mayTake("u", noGate, pod, c.beside), "%+v", c)
	}
}

// runsOn makes the gate one of a containerd of this version.
func (g *Gate) runsOn(version string) {
	bars, _ := RuntimeFaults("containerd", version)
	g.runtime.Store(&runtime{barsGate: bars})
}

// aGate returns the gate of a daemon that knows no pod.
func aGate(use GateUse, hook string) *Gate {
	return aChooser(Options{Gate: GateOptions{Use: use, Path: hook}, ProcRoot: "/proc"}).Gate
}

// mayTake reports whether a container called c may wait in the gate. noGate is why no hook may wait in its sandbox; empty:
// one may.
func (g *Gate) mayTake(uid, noGate string, pod podwatch.Pod, beside bool) bool {
	terms := g.terms(time.Unix(0, 0), uid, &api.Container{Id: "id", Name: "c"}, pod)
	return terms.Allow(starts.ContainerStart{NewContainer: starts.NewContainer{NoGate: noGate, Beside: beside}, MayWait: true})
}

// Of a pod that is too large to be kept no container is known. None may wait in the gate, so the pod waits for its slot before.
func TestAPodWhoseContainersAreNotKnownMayNotFail(t *testing.T) {
	t.Parallel()
	for _, use := range []GateUse{GateAuto, GateAlways} {
		g := aChooser(Options{Gate: GateOptions{Use: use}, ProcRoot: "/proc"}).Gate
		large := podwatch.Pod{UID: "large", RestartPolicy: "Always"}
		assert.False(t, g.terms(time.Now(), "large", &api.Container{Name: "app"}, large).May)
		assert.False(t, g.mayFail(large))
		assert.Equal(t, use == GateAlways, g.mayFail(podwatch.Pod{}), "the pod itself is not known")
	}
}
