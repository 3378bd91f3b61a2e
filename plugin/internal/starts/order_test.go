package starts

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// proxyAndApp gives a pod two app containers, in this order.
func proxyAndApp(pod *podwatch.Pod) {
	pod.Containers = map[string]podwatch.Container{"proxy": {Kind: podwatch.App}, "app": {Kind: podwatch.App, Place: 1}}
}

// kubelet asks for the next container at once after one was refused, or after its wait in the gate ended without a start.
func TestAContainerDoesNotStartBeforeOneThatWaits(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]func(n *node, p *testPod){
		"refused": func(_ *node, p *testPod) {
			assert.True(p.n.t, p.asks("proxy").MayWait)
			p.n.ContainerRemoved(p.sandbox, p.latest["proxy"])
		},
		"its wait in the gate ended": func(_ *node, p *testPod) {
			p.waits("proxy").t.StopWaiting(time.Now())
		},
		"it waited when the daemon began": func(n *node, p *testPod) {
			p.sandbox.Pid = 7
			proxy := p.isMade("proxy")
			proxy.State = api.ContainerState_CONTAINER_CREATED
			n.lists([]*testPod{p}, proxy)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onNode(t, func(t *testing.T, n *node) {
				holder := n.occupies("holder")
				p := n.pod("proxied", proxyAndApp).runs()
				held(n, p)
				holder.getsReady()
				app := p.asks("app")
				assert.False(t, app.Decision.Granted || app.MayWait, "though the slot is free")
				assert.Equal(t, gate.Order, app.Decision.Reason)
				n.ContainerRemoved(p.sandbox, p.latest["app"])
				p.starts("proxy", "app")
				p.is(throttle.Starting, reasons.WithinLimits)
			})
		})
	}
}

func TestAContainerDoesNotWaitForOneThatKubeletDoesNotStart(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*podwatch.Pod){
		"kubelet cannot make it": func(pod *podwatch.Pod) { pod.CannotMake = true },
		"it has ended for good": func(pod *podwatch.Pod) {
			pod.Containers = map[string]podwatch.Container{"proxy": {Kind: podwatch.App, Over: true}, "app": {Kind: podwatch.App, Place: 1}}
		},
		"it comes later": func(pod *podwatch.Pod) {
			pod.Containers = map[string]podwatch.Container{"proxy": {Kind: podwatch.App, Place: 1}, "app": {Kind: podwatch.App}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onNode(t, func(_ *testing.T, n *node) {
				holder := n.occupies("holder")
				p := n.pod("proxied", proxyAndApp).runs()
				p.asks("proxy")
				n.ContainerRemoved(p.sandbox, p.latest["proxy"])
				p.told(change)
				holder.getsReady()
				p.starts("app")
			})
		})
	}
}

// A client of the runtime, or a pod that the watch does not know yet: what was asked for first comes first.
func TestTheOrderOfAnUnknownPodIsThatOfItsContainers(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.stranger("holder").runs()
		holder.starts("app")
		p := n.stranger("proxied").runs()
		for _, name := range []string{"proxy", "app"} {
			assert.False(t, p.asks(name).Decision.Granted)
			n.ContainerRemoved(p.sandbox, p.latest[name])
		}
		n.SandboxStopped(holder.sandbox)
		assert.Equal(t, gate.Order, p.asks("app").Decision.Reason)
		p.starts("proxy", "app")
	}, standalone)
}
