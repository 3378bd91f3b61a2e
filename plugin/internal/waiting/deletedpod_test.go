package waiting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// kubelet's worker for the pod sees the deletion only after the start of the waiting container has ended. Before that,
// it may create the container again, or the next one.
func TestNoContainerOfADeletedPodIsMade(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.occupy("holder")
		p := n.pod("deleted", has(podwatch.App, "second")).runs()
		hook := p.waits("app")
		p.isDeleted()
		assert.Equal(t, reasons.Deleted, hook.result().Reason)
		holder.getsReady()
		for _, name := range []string{"app", "second"} {
			_, err := p.create(name)
			require.ErrorContains(t, err, "pod-pacemaker: not started: "+string(reasons.Deleted), name)
		}
		_, starting := n.names()
		assert.Empty(t, starting, "a free slot starts it neither")
	})
}

// The deletion was reported while no daemon ran, or before kubelet's worker for the pod saw it. kubelet does not end the
// pod while a process waits for it.
func TestAPodThatWasDeletedBeforeItCameDoesNotWait(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		deleted := func(pod *podwatch.Pod) { pod.Deleting = true }
		hook := n.asks(gate.Hello{PodUID: n.pod("a", deleted).uid, ContainerID: "c", Name: "default/a", Since: time.Now(), Deadline: time.Now().Add(time.Minute)})
		assert.Equal(t, gate.Verdict{Reason: reasons.Deleted}, hook.result())
		assert.Equal(t, gate.Verdict{Reason: reasons.Deleted}, n.pod("b", restarted("Never"), deleted).entersRoom().result())
		p := n.pod("c", deleted)
		require.EqualError(t, p.run(), "pod-pacemaker: not started: Deleted (the pod is deleted)")
		waiting, starting := n.names()
		assert.Empty(t, waiting)
		assert.Equal(t, []string{"holder"}, starting)
	})
}
