//go:build e2e && full

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// On a node that pulls in parallel, maxPulling lets two of 12 pods pull at a time, each an image of
// its own: the others wait in the waiting room, and none is refused.
func TestMaxPullingHoldsPodsInTheRoom(t *testing.T) {
	const limit = 2
	onParallelPuller(t)
	startRegistry(t)
	d := startDaemonWithRoom(t)
	d.configure(t, "{throttleConfig: {maxPulling: 2}}")
	most, took := pullStorm(t, 0, registryImages)
	d.idle(t)
	refused, waited := d.status(t).Refused, d.metric(t, `pod_pacemaker_room_wait_seconds_count{reason="TurnNear"}`)
	figure(t, "%d pods with an image each: %d at most are pulled at a time, %.0f waited in the room, all ready after %.1f s", registryImages, most, waited, took.Seconds())
	assert.LessOrEqual(t, most, limit, "images pulled at a time")
	assert.GreaterOrEqual(t, waited, float64(registryImages-limit), "pods that waited in the room")
	assert.Zero(t, refused.Sandbox+refused.Container, "refusals")
	assertAllPaced(t, d)
}
