package starts

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// The runtime reports times of the wall clock, which may be set afterwards. The daemon keeps these times on its own
// clock.
func TestTheTimesOfContainersThatExistAreOnTheDaemonsClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for told, want := range map[int64]time.Time{
		0:                                now,
		now.Add(-time.Minute).UnixNano(): now.Add(-time.Minute),
		now.Add(time.Hour).UnixNano():    now, // the clock was set back since
	} {
		p := newPod(Identity{UID: "u"})
		p.adopt(&api.Container{Id: "c1", Name: "app", State: api.ContainerState_CONTAINER_RUNNING, StartedAt: told}, now)
		require.True(t, p.containers["c1"].running)
		at := p.containers["c1"].since
		assert.Contains(t, at.String(), " m=")
		assert.WithinDuration(t, want, at, 0)
	}
}

// What the daemon knows of a sandbox that it saw being made counts for that sandbox alone, also when the runtime lists
// it.
func TestNoHookMayWaitInASandboxThatWasNotSeenBeingMade(t *testing.T) {
	t.Parallel()
	s := aStarts(standalone)
	e := &s.ledger
	sandbox := func(id string) *api.PodSandbox { return &api.PodSandbox{Id: id, Uid: "u", Pid: 7} }
	noGate := func() string { return e.pods["u"].noGate }
	rebuild := func(id string) { s.Synchronize([]*api.PodSandbox{sandbox(id)}, nil) }
	rebuild("first")
	assert.Equal(t, Unseen, noGate())
	rebuild("first")
	assert.Equal(t, Unseen, noGate(), "a list says nothing about the shim")
	for _, why := range []string{"", "the runtime was too old"} {
		s.Sandbox(time.Now(), NewSandbox{Sandbox: sandbox("seen"), NoGate: why})
		rebuild("seen")
		assert.Equal(t, why, noGate())
		e.pods["u"].isAsked(time.Now(), "seen", &api.Container{Id: "c", Name: "c"}, podwatch.Pod{})
		assert.Equal(t, why, noGate())
	}
	e.pods["u"].isAsked(time.Now(), "other", &api.Container{Id: "d", Name: "c"}, podwatch.Pod{})
	assert.Equal(t, Unseen, noGate())
}

// The runtime lists the sandboxes of a pod in no order.
func TestOnlyASandboxWithAProcessOrARunningContainerLives(t *testing.T) {
	t.Parallel()
	e := &aStarts().ledger
	rebuild := func(ctrs []*api.Container, sandboxes ...*api.PodSandbox) (p *Pod, lost []*Pod) {
		live := alive(sandboxes, ctrs)
		for _, sandbox := range live {
			e.atSandbox(sandbox)
		}
		lost = e.rebuildPods(time.Now(), live, ctrs)
		return e.pods["u"], lost
	}
	sandbox := func(id string, pid uint32) *api.PodSandbox {
		return &api.PodSandbox{Id: id, Uid: "u", Pid: pid, Linux: &api.LinuxPodSandbox{CgroupParent: "/" + id}}
	}
	left := &api.Container{Id: "left", PodSandboxId: "dead", Name: "app", State: api.ContainerState_CONTAINER_CREATED}
	for _, sandboxes := range [][]*api.PodSandbox{
		{sandbox("dead", 0), sandbox("present", 7), sandbox("older", 0)},
		{sandbox("present", 7), sandbox("older", 0), sandbox("dead", 0)},
	} {
		p, lost := rebuild([]*api.Container{left}, sandboxes...)
		assert.Empty(t, lost)
		assert.Equal(t, "present", p.sandbox)
		assert.Equal(t, "/present", p.cgroup)
		assert.Empty(t, p.containers, "a container in a dead sandbox never starts")
	}
	inVM := &api.Container{Id: "in-vm", PodSandboxId: "vm", Name: "app", State: api.ContainerState_CONTAINER_RUNNING}
	p, lost := rebuild([]*api.Container{inVM, left}, sandbox("vm", 0), sandbox("dead", 0))
	assert.Equal(t, []*Pod{p}, lost, "its sandbox is another one")
	assert.Equal(t, "vm", p.sandbox, "the runtime does not report the sandbox's process")
	_, lost = rebuild(nil, sandbox("vm", 0))
	assert.Equal(t, []*Pod{p}, lost)
	assert.False(t, p.isLeft())
}
