//go:build e2e && full

package e2e

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A pod of phase Failed, and one with a container in CrashLoopBackOff beside one that never gets
// ready, give their slot to the next pod. Nothing else could free it while the scenario lasts.
func TestPodsThatFailGiveTheirSlotBack(t *testing.T) {
	d := startDaemon(t, placesForAll...)
	d.configure(t, "{settleTime: 19m, startTimeout: 20m, maxWait: 1h, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	for name, c := range map[string]struct {
		spec  func(slow latch) corev1.PodSpec
		fails func(pod *corev1.Pod) bool
		ends  []reasons.Reason
	}{
		"failed": {
			func(slow latch) corev1.PodSpec { return herdPod(0, runOnce, crashing, slow.holds) },
			func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed },
			[]reasons.Reason{reasons.Failed, reasons.SandboxGone}, // kubelet stops the sandbox before it reports the phase
		},
		"crash-loop": {
			func(slow latch) corev1.PodSpec {
				return herdPod(0, sleeping("1h"), func(spec *corev1.PodSpec) {
					crashes := herdPod(0, crashing).Containers[0]
					crashes.Name = "crashes"
					slow.hold(spec, &crashes)
					spec.Containers = append(spec.Containers, crashes)
				})
			},
			func(pod *corev1.Pod) bool {
				return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
					return s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
				})
			},
			[]reasons.Reason{reasons.CrashLoop},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ns, slow := namespace(t), newLatch(t)
			f := follow(t, ns) // kubelet removes containers that crashed
			createPod(t, ns, name, c.spec(slow))
			eventually(t, "all its containers run", func() bool { return len(f.started()) == len(getPod(t, ns, name).Spec.Containers) })
			createPod(t, ns, "next", herdPod(0.1))
			eventually(t, "the next pod waits at the gate", func() bool { return created(t, ns, "next") })
			slow.release(t)
			eventually(t, "kubelet says that the pod fails", func() bool { return c.fails(getPod(t, ns, name)) })
			eventually(t, "the next pod is ready", func() bool { return isReady(t, ns, "next") })
			eventually(t, "the daemon says so too", func() bool {
				return slices.ContainsFunc(d.status(t).Ended, func(p admin.Pod) bool {
					return p.Namespace == ns && p.Name == name && slices.Contains(c.ends, p.Reason)
				})
			})
			first := slices.IndexFunc(f.started(), func(c container) bool { return !c.finished.IsZero() })
			next := slices.IndexFunc(f.started(), func(c container) bool { return c.pod == "next" })
			if assert.GreaterOrEqual(t, first, 0, "a container that has ended") && assert.GreaterOrEqual(t, next, 0) {
				all := f.started()
				assert.True(t, all[next].started.After(all[first].finished), "the next pod began at %s, the first crash was at %s", all[next].started, all[first].finished)
			}
		})
	}
}
