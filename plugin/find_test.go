package plugin

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// whileGrouped calls a function while a pod is put into its groups, which is just before
// it joins the queue.
type whileGrouped struct {
	*throttle.Limiter
	call func()
}

func (l *whileGrouped) SetGroups(now time.Time, pod throttle.PodGroups) {
	l.call()
	l.Limiter.SetGroups(now, pod)
}

// A start that was found keeps its slot until it is stuck if its end was told between the
// look at its containers and the count. What tells of ends takes the pacer's lock.
func TestNothingCanEndWhileItIsFound(t *testing.T) {
	t.Parallel()
	p := newPacer(Options{Log: discard(), ProcRoot: "/nowhere", CgroupRoot: "/nowhere"}, nil, newMetrics())
	looked, free := false, false
	p.keeper = policies.New(policies.Options{Log: discard(), Limiter: &whileGrouped{p.limiter, func() {
		looked = true
		if p.mu.TryLock() {
			free = true
			p.mu.Unlock()
		}
	}}})
	found, err := crd.Parse([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: t1}\nspec: " + t1))
	require.NoError(t, err)
	p.keeper.SetPolicies(time.Now(), found.Policies)

	sandbox := &api.PodSandbox{Id: "s", Uid: "u", Namespace: "default", Name: "ends", Pid: 1 << 22, Labels: ofT1}
	runs := &api.Container{Id: "c", PodSandboxId: "s", Name: "app", State: api.ContainerState_CONTAINER_RUNNING}
	_, lately := p.rebuild(time.Now(), []*api.PodSandbox{sandbox}, []*api.Container{runs})
	require.Len(t, lately, 1)
	p.find(time.Now(), lately[0])
	assert.True(t, looked)
	assert.False(t, free, "its end could be told now, and nobody would end what is counted next")
	ticket := p.limiter.Lookup("u")
	state, reason := ticket.Status()
	require.Equal(t, throttle.Starting, state)
	require.Equal(t, throttle.Adopted, reason)

	p.forget(time.Now(), "u")
	state, reason = ticket.Status()
	assert.Equal(t, throttle.Gone, state, "with the record")
	assert.Equal(t, throttle.Deleted, reason)
	p.find(time.Now(), lately[0])
	state, _ = p.limiter.Lookup("u").Status()
	assert.Equal(t, throttle.Gone, state, "nothing is found of a pod that is gone")
}
