package starts

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

func TestTheSandboxTellsWhereItsPodComesFrom(t *testing.T) {
	t.Parallel()
	sandbox := &api.PodSandbox{
		Uid: "u", Namespace: "ns", Name: "web",
		Labels: map[string]string{"tier": "front", labelTemplateGeneration: "1"}, Annotations: map[string]string{annotationSource: "file"},
	}
	p := newPod(Identity{UID: "u"})
	p.update(sandbox)
	assert.True(t, p.Static && p.Template)
	sandbox.Annotations[annotationSource] = sourceAPI
	delete(sandbox.Labels, labelTemplateGeneration)
	p.update(sandbox)
	assert.True(t, !p.Static && !p.Template)
}

// A kill of the runtime may interrupt a start. The daemon may then miss that the container began to run, and treat an
// earlier container of its name as running. kubelet's report about the latest container counts.
func TestProgressGoesByTheLatestContainerOfAName(t *testing.T) {
	t.Parallel()
	joined := time.Unix(1000, 0)
	p := newPod(Identity{UID: "u"})
	first := p.create(&api.Container{Id: "first", Name: "app"}, joined.Add(time.Second))
	pod := podwatch.Pod{Containers: map[string]podwatch.Container{"app": {ID: "second", Running: true}}}
	p.create(&api.Container{Id: "second", Name: "app"}, joined.Add(2*time.Second))
	p.containers["first"] = first
	first.running, first.since = true, joined.Add(time.Second)

	run := p.progress(joined, pod)
	assert.Equal(t, Progress{IDs: map[string]string{"app": "second"}, Youngest: joined.Add(2 * time.Second), Made: joined.Add(2 * time.Second), Begun: true}, run)
	assert.True(t, pod.Describes(run.IDs))

	p.exit(p.containers["second"], joined.Add(3*time.Second))
	run = p.progress(joined, pod)
	assert.Empty(t, run.IDs, "the runtime reported its end")
	assert.False(t, run.CrashLoops, "kubelet may start it again at once")
	pod.Containers["app"] = podwatch.Container{ID: "second", CrashLooping: true}
	assert.True(t, p.progress(joined, pod).CrashLoops)
}

// A refused sandbox is removed while its pod waits for kubelet's next attempt, and so may be an older one.
func TestTheRemovalOfARefusedSandboxIsNotTheEndOfThePod(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"old", "refused"}, {"refused", "old"}} {
		s := aStarts(standalone)
		s.configured(t, "spec: {}", oneSlot)
		s.starts(time.Now(), "holder")
		sandbox := func(id string) *api.PodSandbox {
			return &api.PodSandbox{Id: id, Uid: "u", Namespace: "default", Name: "u"}
		}
		p := s.ledger.atSandbox(sandbox("old"))
		p.setSandbox("old")
		s.SandboxStopped(sandbox("old"))
		d, _ := s.Sandbox(time.Now(), NewSandbox{Sandbox: sandbox("refused"), Refusable: true, SlotFirst: true})
		require.False(t, d.Granted)
		for _, id := range order {
			s.SandboxRemoved(sandbox(id))
			assert.Equal(t, throttle.Waiting, state(p.ticket), id)
		}
		p.setSandbox("new")
		s.SandboxRemoved(sandbox("old"))
		assert.Equal(t, throttle.Waiting, state(p.ticket), "the pod has another one")
		s.SandboxRemoved(sandbox("new"))
		assert.Equal(t, throttle.Gone, state(p.ticket))
	}
}

// kubelet backs off before it makes a container again whose wait ended without a turn, as after a crash, and starts the
// others of the pod meanwhile.
func TestAWaitThatEndedWithoutATurnIsNoFailureOfTheNextStart(t *testing.T) {
	t.Parallel()
	joined := time.Unix(1000, 0)
	for _, expired := range []bool{false, true} {
		p := newPod(Identity{UID: "u"})
		p.isAsked(joined, "s", &api.Container{Id: "first", Name: "app0", PodSandboxId: "s"}, podwatch.Pod{})
		if expired {
			p.expire(joined)
		}
		p.isAsked(joined.Add(time.Minute), "s", &api.Container{Id: "other", Name: "app1", PodSandboxId: "s"}, podwatch.Pod{})
		p.begins(joined.Add(time.Minute), &api.Container{Id: "other", Name: "app1", PodSandboxId: "s"})
		run := p.progress(joined, podwatch.Pod{Containers: map[string]podwatch.Container{"app0": {ID: "first", CrashLooping: true}, "app1": {}}})
		assert.Equal(t, !expired, run.CrashLoops, "expired: %t", expired)
		assert.Contains(t, run.IDs, "app1")
	}
}

// kubectl debug adds a container to a pod that starts or runs. If its process cannot start, no event of the runtime says so.
func TestAnEphemeralContainerIsNoPartOfAStart(t *testing.T) {
	t.Parallel()
	joined := time.Unix(1000, 0)
	made := func(p *Pod, name string) *api.Container {
		c := &api.Container{Id: name, Name: name, PodSandboxId: "s"}
		p.isAsked(joined, "s", c, podwatch.Pod{})
		return c
	}
	pod := podwatch.Pod{Containers: map[string]podwatch.Container{
		"init": {Kind: podwatch.Init, ID: "init"}, "app": {Kind: podwatch.App, ID: "app"},
	}} // whose ephemeral containers it does not list

	p := newPod(Identity{UID: "u"})
	p.begins(joined, made(p, "app"))
	p.begins(joined.Add(time.Minute), made(p, "debug"))
	run := p.progress(joined, pod)
	assert.Equal(t, map[string]string{"app": "app"}, run.IDs)
	assert.Equal(t, joined, run.Youngest, "the settle time does not begin anew")

	p = newPod(Identity{UID: "u"})
	init := made(p, "init")
	p.begins(joined, init)
	debug := made(p, "debug")
	p.exit(p.containers["init"], joined.Add(time.Second))
	assert.False(t, p.progress(joined, pod).Making)
	assert.False(t, p.allUndone(pod), "the init container has done its work")
	p.ends(joined, debug, true)
	assert.False(t, p.allUndone(pod))

	p = newPod(Identity{UID: "u"})
	app := made(p, "app")
	p.begins(joined, made(p, "debug"))
	p.ends(joined, app, true)
	p.begins(joined, debug)
	assert.True(t, p.allUndone(pod), "the container could not be made, whoever looks on")
}
