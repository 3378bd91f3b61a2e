package plugin

import (
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestAStartThatNobodyAskedForIsCounted(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	waits := n.pod("waits").runs()
	waits.waitsAtGate("app")
	stranger := n.strangePod("stranger")
	for _, p := range []*testPod{waits, stranger} {
		// Its hook has left by itself, or there was none.
		n.d.handler.PostStartContainer(
			&api.PodSandbox{Id: "sandbox-of-" + p.spec.Name, Uid: p.uid, Namespace: p.spec.Namespace, Name: p.spec.Name},
			&api.Container{Id: "container-of-" + p.spec.Name, Name: "app"})
		p.becomes(throttle.Starting, reasons.Adopted)
	}
	_, starting := n.names()
	assert.ElementsMatch(t, []string{"holder", "waits", "stranger"}, starting, "over the limit where reality is")
	assert.InDelta(t, 2, labelled(t, n, "pod_pacemaker_unpaced_total", "NotAsked"), 0)
}

func TestStandaloneTheAppIsPacedAfterAnInitContainerThatLookedLikeAll(t *testing.T) {
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
