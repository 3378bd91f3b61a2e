package starts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// The API server has only a mirror of a static pod, which may be deleted before the sandbox ends, or long after.
func TestAStaticPodIsForgottenWithItsLastPart(t *testing.T) {
	t.Parallel()
	for _, mirrorFirst := range []bool{true, false} {
		onUnlimitedNode(t, func(t *testing.T, n *node) {
			p := n.pod("static", func(pod *podwatch.Pod) { pod.Static = true }, factsOf(ofT1, nil)).runs()
			p.starts("app")
			isGrouped := func(is bool, why string) {
				n.locked(func(l *ledger) {
					_, has := l.pods[p.uid]
					assert.Equal(t, is, has, why)
				})
			}
			mirrorIsDeleted := func() {
				mirror := n.watch.pods[p.uid]
				delete(n.watch.pods, p.uid)
				n.PodChanged(time.Now(), mirror, true)
			}
			isGrouped(true, "it runs")
			if mirrorFirst {
				mirrorIsDeleted()
				isGrouped(true, "it still runs")
				p.is(throttle.Starting, reasons.Exempt)
			}
			n.SandboxStopped(p.sandbox)
			n.ContainerRemoved(p.sandbox, p.latest["app"])
			n.SandboxRemoved(p.sandbox)
			n.locked(func(l *ledger) { require.Empty(t, l.uids()) })
			if !mirrorFirst {
				isGrouped(true, "the API server still has it")
				mirrorIsDeleted()
			}
			isGrouped(false, "nothing is left of it")
		})
	}
}
