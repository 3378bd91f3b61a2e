package plugin

import (
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestAStartWithoutARequestIsCounted(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	waits := n.pod("waits").runs()
	waits.waitsAtGate("app")
	stranger := n.strangePod("stranger")
	for _, p := range []*testPod{waits, stranger} {
		// Its hook ended by itself, or the container had none.
		require.NoError(t, n.d.handler.PostStartContainer(n.ctx,
			&api.PodSandbox{Id: "sandbox-of-" + p.spec.Name, Uid: p.uid, Namespace: p.spec.Namespace, Name: p.spec.Name},
			&api.Container{Id: "container-of-" + p.spec.Name, Name: "app"}))
		p.becomes(throttle.Starting, reasons.Adopted)
	}
	_, starting := n.names()
	assert.ElementsMatch(t, []string{"holder", "waits", "stranger"}, starting, "starts under way may exceed the limit")
	assert.InDelta(t, 2, labelled(t, n, "pod_pacemaker_unpaced_total", "NotAsked"), 0)
}

func TestStandaloneTheAppIsPacedAfterAnInitContainer(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone, runsFor(patience))
	p := n.strangePod("with-init").runs()
	p.startsNow("init", "true")
	p.becomes(throttle.Started, reasons.Completed)
	holder := n.strangePod("holder").runs()
	holder.creates("app")
	_, err := p.create("app")
	require.ErrorContains(t, err, string(reasons.Concurrency))
	assert.Equal(t, throttle.Waiting, p.is())
}
