//go:build e2e && full

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A pod that alone exceeds a limit of a StartPolicy is said to be Unadmittable, in an event and in
// the status, and pods behind it start. It starts when the limit is raised.
func TestAPodThatCanNeverStartHoldsUpNoOther(t *testing.T) {
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	limit := func(cpu string) string {
		return `{selector: {terms: [{podSelector: {matchLabels: {part: a}}}]}, limits: {running: {requests: {cpu: ` + cpu + `}}}}`
	}
	d.enforce(t, "narrow", limit("200m"))
	ns, part := namespace(t), map[string]string{"part": "a"}
	labelled(t, ns, "big", part, herdPod(0.1, requesting("cpu", "300m")))
	eventually(t, "an event says that the pod can never start", func() bool {
		return slices.ContainsFunc(ownEvents(t, ns, "big"), func(e corev1.Event) bool {
			return e.Reason == "Unadmittable" && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "300m of 200m cpu")
		})
	})
	reason, detail := d.waitsFor(t, ns, "big")
	assert.Equal(t, reasons.Unadmittable, reason)
	assert.Contains(t, detail, "policy narrow")
	eventually(t, "kubelet was refused for that reason", func() bool {
		for sample, n := range d.samples(t, "pod_pacemaker_refusals_total") {
			if strings.Contains(sample, "Unadmittable") && n > 0 {
				return true
			}
		}
		return false
	})

	labelled(t, ns, "small", part, herdPod(0.1, requesting("cpu", "100m")))
	createPod(t, ns, "outside", herdPod(0.1))
	eventually(t, "the pods behind it are ready", func() bool { return isReady(t, ns, "small") && isReady(t, ns, "outside") })
	assert.Equal(t, []string{"outside", "small"}, begun(t, ns), "pods that have begun")

	d.enforce(t, "narrow", limit("400m"))
	eventually(t, "the pod is ready", func() bool { return isReady(t, ns, "big") })
	assertAllPaced(t, d)
}
