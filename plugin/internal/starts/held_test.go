package starts

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// kubelet backs off for up to five minutes for a container whose waits in the gate ended without a turn, and asks for the
// next one meanwhile. If that is refused, the pod stays away although a slot is free.
func TestAContainerDoesNotWaitForOneThatKubeletBacksOffFor(t *testing.T) {
	t.Parallel()
	p := newPod(Identity{UID: "u"})
	p.hold("proxy")
	pod := podwatch.Pod{Containers: map[string]podwatch.Container{"proxy": {Kind: podwatch.App}, "app": {Kind: podwatch.App, Place: 1}}}
	assert.Equal(t, "proxy", p.heldBefore("app", pod))
	pod.Containers["proxy"] = podwatch.Container{Kind: podwatch.App, CrashLooping: true}
	assert.Empty(t, p.heldBefore("app", pod))
}
