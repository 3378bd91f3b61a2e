//go:build e2e && full

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// Controllers such as Tekton and Flyte give up a pod that shows the error of a container. So a pod that is never
// restarted waits before its sandbox, where it shows ContainerCreating.
func TestPodsThatAreNeverRestartedWaitQuietly(t *testing.T) {
	for name, start := range map[string]func(*testing.T, ...string) *daemon{"the defaults": startDaemon, "the waiting room": startDaemonWithRoom} {
		t.Run(name, func(t *testing.T) {
			repeated(t, func(t *testing.T) string { return onceOneAtATime(t, name, start(t)) })
		})
	}
}

// onceOneAtATime starts pods that are never restarted, one at a time. On a node that was so busy that containerd closed the
// daemon's connection, it cannot be judged: pods get their sandboxes meanwhile.
func onceOneAtATime(t *testing.T, name string, d *daemon) (discarded string) {
	const count = 16
	most := map[string]int{"the defaults": 2}[name]
	d.configure(t, "{settleTime: 2m, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns := namespace(t)
	seen, stop := watchLooks(t, ns)
	begin := time.Now()
	for i := range count {
		createPod(t, ns, fmt.Sprintf("once-%d", i), herdPod(0.1, runOnce))
	}
	polledFor(t, 10*time.Minute, time.Second, "all pods have ended", func() bool {
		ended := 0
		for _, p := range pods(t, ns) {
			assert.NotEqual(t, corev1.PodFailed, p.Status.Phase, p.Name)
			if p.Status.Phase == corev1.PodSucceeded {
				ended++
			}
		}
		return ended == count
	})
	stop()
	showed, s := seen.pods("CreateContainerError"), d.status(t)
	if lost := strings.Count(d.logged(t), "no connection to the runtime"); lost > 0 {
		return fmt.Sprintf("containerd closed the daemon's connection %d times", lost)
	}
	assert.LessOrEqual(t, len(showed), most, "pods that showed CreateContainerError: %v", showed)
	figure(t, "%s: %d pods that are never restarted, one at a time, ended after %.1f s; %d showed CreateContainerError; refused %d times at the sandbox, %d at the container",
		name, count, time.Since(begin).Seconds(), len(showed), s.Refused.Sandbox, s.Refused.Container)
	return ""
}
