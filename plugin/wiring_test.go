package plugin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// What the daemon makes of its options, and passes on to its parts, in the values on which users count.

// A hook gets the deadline of --gate-timeout.
func TestAHookHasTheGatesTimeout(t *testing.T) {
	t.Parallel()
	n := newNode(t, "spec: {startTimeout: 20s, throttleConfig: {maxConcurrent: {value: 1}}}", with(func(o *Options) { o.GateTimeout = 100 * time.Second }))
	n.pod("first").runs().startsNow("app")
	before := time.Now()
	second := n.pod("second").runs().creates("app")
	require.Len(t, second.Hooks(), 1)
	_, hello, _, _, err := wire.ParseArgv(second.Hooks()[0].GetArgs()[1:])
	require.NoError(t, err)
	assert.WithinRange(t, hello.Deadline, before.Add(99*time.Second), time.Now().Add(100*time.Second))
}

// A pod gets a place in the gate only for that long: with starts that hold their slot for up to 5 min, none in 100 s.
func TestNoPlaceInTheGateIsPromisedBeyondItsTimeout(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.GateTimeout = 100 * time.Second }))
	n.pod("first").runs().startsNow("app")
	second := n.pod("second")
	err := second.run()
	if err == nil {
		_, err = second.create("app")
	}
	require.ErrorContains(t, err, "pod-pacemaker")
}

// What the API server says of a pod that is being stopped keeps the daemon from registering, also where containerd keeps its
// state elsewhere.
func TestTheDaemonWaitsForTheStopsThatTheAPIServerKnows(t *testing.T) {
	t.Parallel()
	now, grace := metav1.Now(), int64(60)
	elsewhere := with(func(o *Options) {
		o.ContainerdState, o.InPod = t.TempDir(), true
		require.NoError(t, os.MkdirAll(o.Bundles(), 0o700))
	})
	c := unstartedAPINodeWith(t, []nodeOption{elsewhere}, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slow", UID: "u", DeletionTimestamp: &now, DeletionGracePeriodSeconds: &grace},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "app"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "app", ContainerID: "containerd://c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	})
	require.NoError(t, c.rt.Start())
	c.runs(c.d)
	c.eventually("the daemon says for which pod it waits", func() bool {
		why := c.d.connection.State().Err
		return why != nil && strings.Contains(why.Error(), "is stopping a container of pod ns/slow")
	})
	assert.False(t, c.d.connection.State().Connected)
}

// Each node holds its Leases under its own name.
func TestTheHolderOfALeaseIsTheNode(t *testing.T) {
	t.Parallel()
	server := newLeaseServer()
	n := claims(t, server)
	n.pod("first", factsOf(nil, nil)).runs().startsNow("app")
	server.mu.Lock()
	defer server.mu.Unlock()
	require.Len(t, server.holders, 1)
	for lease, holder := range server.holders {
		assert.Equal(t, "node", holder, lease)
	}
}

// A pod waits in the room for at most twice as long as in the gate.
func TestTheRoomWaitsForTwiceTheGatesTimeout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, text := range map[string]string{cni.ProgramName: "#!/bin/true", "ptp": "x", "10-net.conflist": `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"ptp"}]}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	answers := make(chan struct{})
	close(answers)
	i := newCNI(Options{CNI: cni.UseOn, CNIConfDir: dir, CNIBinDir: filepath.Join(dir, "."), Programs: dir, RunDir: dir, GateTimeout: 100 * time.Second, Log: discard()}, answers, func(string) {})
	i.Step(time.Now().Add(-time.Hour))
	require.True(t, i.State().Installed, i.State().WhyNot)
	text, err := os.ReadFile(filepath.Join(dir, "00-pod-pacemaker.conflist"))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"timeoutMillis": 200000,`)
}

// A daemon is connected to the runtime before it knows its configuration. Until it does, it answers no pod, and each would
// wait in the room for 10 s in vain.
func TestTheRoomIsInstalledOnceTheDaemonAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, text := range map[string]string{cni.ProgramName: "#!/bin/true", "ptp": "x", "10-net.conflist": `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"ptp"}]}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	o := Options{NodeName: "node", CNI: cni.UseOn, CNIConfDir: dir, CNIBinDir: filepath.Join(dir, "."), Programs: dir, RunDir: dir, Log: discard(), ProcRoot: "/nowhere", CgroupRoot: "/nowhere"}
	d := newDaemon(o, cores.Of(1), crd.Documents{}, nil, defaultTuning())
	d.starts.Synchronize(nil, nil)
	d.cni.Step(time.Now())
	require.Equal(t, "the daemon does not answer pods yet", d.cni.State().WhyNot)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.serveGate(ctx) }()
	require.Eventually(t, func() bool { d.cni.Step(time.Now()); return d.cni.State().Installed }, time.Minute, time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}

// The room's files have one name on a node: two daemons would take out each other's.
func TestADaemonWithAnInstanceHasNoRoom(t *testing.T) {
	t.Parallel()
	o := goodOptions()
	require.True(t, o.wantsRoom())
	o.InCluster, o.Instance = false, "second"
	d, err := New(o)
	require.NoError(t, err)
	assert.False(t, o.wantsRoom())
	assert.Nil(t, d.cni)
	room := d.Status().Room
	assert.False(t, room.Wanted)
	assert.Contains(t, room.WhyNot, "a node has one waiting room")
}

// Where the room is in place when the daemon starts, pods may wait there that have not asked again: nobody is admitted
// before they could.
func TestADaemonThatFindsTheRoomWaitsForThoseInIt(t *testing.T) {
	t.Parallel()
	for _, found := range []bool{false, true} {
		dir := t.TempDir()
		if found {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "00-pod-pacemaker.conflist"), []byte("{}"), 0o600))
		}
		o := Options{NodeName: "node", CNI: cni.UseOn, CNIConfDir: dir, CNIBinDir: dir, Programs: dir, RunDir: dir, Log: discard(), ProcRoot: "/nowhere", CgroupRoot: "/nowhere"}
		d := newDaemon(o, cores.Of(1), crd.Documents{}, nil, defaultTuning())
		d.starts.Synchronize(nil, nil)
		assert.Equal(t, found, d.starts.Freeze())
	}
}

// What refusals take of the CPUs is no load of starts, so the adaptive limit must know it.
func TestTheSignalsKnowWhatRefusalsTake(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone, with(func(o *Options) { o.Gate = waiting.GateNever }))
	n.strangePod("holder").runs().startsNow("app")
	require.Zero(t, n.d.signals.Measure()[throttle.SignalCPU].Refusals)
	require.Error(t, n.strangePod("refused").run())
	require.Positive(t, n.d.signals.Measure()[throttle.SignalCPU].Refusals)
}
