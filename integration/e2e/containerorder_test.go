//go:build e2e && full

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// withProxy puts a container with a postStart hook before the app, for which kubelet waits.
func withProxy(spec *corev1.PodSpec) {
	spec.Containers = slices.Insert(spec.Containers, 0, corev1.Container{
		Name: "proxy", Image: lab.HerdImage, ImagePullPolicy: corev1.PullNever, Args: []string{"--cpu-seconds", "0", "--port", "8090"},
		Lifecycle: &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}},
	})
}

// No app begins before the proxy of its pod has run its postStart hook, though waits in the gate end before their turn, and
// pods are refused.
func TestAppsBeginAfterTheirProxies(t *testing.T) {
	const herd = 6
	for name, args := range map[string][]string{"short waits in the gate": {"--gate-timeout", "5s", "--refuse-at", "container"}, "refusals": {"--gate", "never"}} {
		t.Run(name, func(t *testing.T) {
			d := startDaemon(t, args...)
			d.configure(t, "{maxWait: 1h, throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}}")
			ns, slow := namespace(t), newLatch(t)
			for i := range 2 {
				createPod(t, ns, fmt.Sprintf("holds-%d", i), herdPod(0, slow.holds))
			}
			eventually(t, "the slots are held", func() bool { return len(begun(t, ns)) == 2 })
			f := follow(t, ns)
			for i := range herd {
				createPod(t, ns, fmt.Sprintf("proxied-%d", i), herdPod(0.2, withProxy))
			}
			eventually(t, "containers are refused", func() bool { return d.status(t).Refused.Container >= 2 })
			slow.release(t)
			eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd+2) })
			proxies := map[string]container{}
			apps := 0
			for _, c := range f.started() {
				switch proxy, begun := proxies[c.pod]; {
				case c.name == "proxy":
					proxies[c.pod] = c
				case len(c.pod) > len("proxied") && c.pod[:len("proxied")] == "proxied":
					apps++
					assert.True(t, begun && c.started.Sub(proxy.started).Seconds() >= 1, "the app of %s began at %s, its proxy at %s", c.pod, c.started, proxy.started)
				}
			}
			assert.Equal(t, herd, apps)
		})
	}
}
