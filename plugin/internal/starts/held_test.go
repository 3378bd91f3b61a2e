package starts

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// kubelet backs off for up to five minutes for a container whose waits in the gate ended without a turn, and asks for the
// next one meanwhile. If that is refused, the pod stays away although a slot is free.
func TestAContainerDoesNotWaitForOneThatKubeletBacksOffFor(t *testing.T) {
	t.Parallel()
	p := newPod(Identity{UID: "u"})
	p.holdBack(time.Now(), "proxy")
	pod := podwatch.Pod{Containers: map[string]podwatch.Container{"proxy": {Kind: podwatch.App}, "app": {Kind: podwatch.App, Place: 1}}}
	assert.Equal(t, "proxy", p.heldBackBefore(time.Now(), "app", pod))
	pod.Containers["proxy"] = podwatch.Container{Kind: podwatch.App, CrashLooping: true}
	assert.Empty(t, p.heldBackBefore(time.Now(), "app", pod))
}

// While there is no connection to the runtime, what the daemon held back starts, and an init container ends. Else the next
// container waits for ever.
func TestAContainerDoesNotWaitForOneThatStartedUnseen(t *testing.T) {
	t.Parallel()
	p := newPod(Identity{UID: "u"})
	p.holdBack(time.Now(), "schema")
	p.holdBack(time.Now(), "proxy")
	pod := podwatch.Pod{Containers: map[string]podwatch.Container{
		"schema": {Kind: podwatch.Init}, "proxy": {Kind: podwatch.Sidecar, Place: 1}, "app": {Kind: podwatch.App, Place: 2},
	}}
	assert.Empty(t, p.heldBackBefore(time.Now(), "proxy", pod))
	assert.Equal(t, "proxy", p.heldBackBefore(time.Now(), "app", pod), "a sidecar that restarts may be refused beside the app")
	p.adopt(&api.Container{Id: "1", Name: "proxy", State: api.ContainerState_CONTAINER_RUNNING}, time.Now())
	assert.Empty(t, p.heldBackBefore(time.Now(), "app", pod))
}

// In standalone, no report says that kubelet cannot make a container.
func TestAContainerDoesNotWaitForOneThatKubeletNoLongerAsksFor(t *testing.T) {
	t.Parallel()
	p, now := newPod(Identity{UID: "u"}), time.Now()
	p.create(&api.Container{Id: "1", Name: "proxy"}, now)
	p.holdBack(now, "proxy")
	assert.Equal(t, "proxy", p.heldBackBefore(now.Add(askedAgainWithin), "app", podwatch.Pod{}))
	assert.Empty(t, p.heldBackBefore(now.Add(askedAgainWithin+1), "app", podwatch.Pod{}))

	p.expire(now.Add(time.Hour))
	assert.Equal(t, "proxy", p.heldBackBefore(now.Add(time.Hour+askedAgainWithin), "app", podwatch.Pod{}), "its hook waited for an hour")
}
