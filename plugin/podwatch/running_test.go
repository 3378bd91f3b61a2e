package podwatch

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestTrimAllRunning(t *testing.T) {
	t.Parallel()
	const always, never, onFailure = "Always", "Never", "OnFailure"
	a, b, c, setup := container("a"), container("b"), container("c"), container("setup")
	proxy, ends, fails, ruled := with(container("proxy"), always), with(b, never), with(b, onFailure), with(b, never)
	ruled.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart}}
	type (
		all  = []corev1.Container
		says = []corev1.ContainerStatus
	)
	for name, tt := range map[string]struct {
		policy            corev1.RestartPolicy // of the pod, Always when empty
		init, app         all
		initSays, appSays says
		want              bool
	}{
		"no status at all":        {app: all{a}},
		"no container":            {},
		"status of a stranger":    {app: all{a}, appSays: says{running("b", 0)}},
		"one of one":              {app: all{a}, appSays: says{running("a", 3)}, want: true},
		"one of two reported":     {app: all{a, b}, appSays: says{running("a", 3)}},
		"one of two runs":         {app: all{a, b}, appSays: says{running("a", 3), waiting("b", "ContainerCreating")}},
		"the youngest counts":     {app: all{a, b, c}, appSays: says{running("a", 3), running("b", 9), running("c", 5)}, want: true},
		"an empty state":          {app: all{a}, appSays: says{{Name: "a"}}},
		"app before its sidecar":  {init: all{proxy}, app: all{a}, initSays: says{waiting("proxy", "CrashLoopBackOff")}, appSays: says{running("a", 1)}},
		"sidecar not reported":    {init: all{proxy}, app: all{a}, appSays: says{running("a", 1)}},
		"sidecar and app":         {init: all{proxy}, app: all{a}, initSays: says{running("proxy", 1)}, appSays: says{running("a", 4)}, want: true},
		"the sidecar is youngest": {init: all{proxy}, app: all{a}, initSays: says{running("proxy", 8)}, appSays: says{running("a", 4)}, want: true},
		"sidecar alone":           {init: all{proxy}, app: all{a}, initSays: says{running("proxy", 1)}, appSays: says{waiting("a", "PodInitializing")}},
		"an ended sidecar":        {policy: never, init: all{proxy}, app: all{a}, initSays: says{ended("proxy", 0)}, appSays: says{running("a", 1)}},
		"an init container runs":  {init: all{setup}, app: all{a}, initSays: says{running("setup", 1)}, appSays: says{waiting("a", "PodInitializing")}},
		"an init container ended": {init: all{setup}, app: all{a}, initSays: says{ended("setup", 0)}, appSays: says{running("a", 1)}, want: true},
		"Always: one ended":       {app: all{a, b}, appSays: says{running("a", 1), ended("b", 0)}},
		"OnFailure: one finished": {policy: onFailure, app: all{a, b}, appSays: says{running("a", 1), ended("b", 0)}, want: true},
		"OnFailure: one failed":   {policy: onFailure, app: all{a, b}, appSays: says{running("a", 1), ended("b", 1)}},
		"Never: one failed":       {policy: never, app: all{a, b}, appSays: says{running("a", 1), ended("b", 1)}, want: true},
		"Never: all ended":        {policy: never, app: all{a}, appSays: says{ended("a", 0)}},
		"its own Never":           {app: all{a, ends}, appSays: says{running("a", 1), ended("b", 1)}, want: true},
		"its own OnFailure":       {policy: never, app: all{a, fails}, appSays: says{running("a", 1), ended("b", 1)}},
		"its own restart rules":   {app: all{a, ruled}, appSays: says{running("a", 1), ended("b", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := trim(webPod(func(p *corev1.Pod) {
				p.Spec.RestartPolicy = cmp.Or(tt.policy, always)
				p.Spec.InitContainers, p.Spec.Containers = tt.init, tt.app
				p.Status.InitContainerStatuses, p.Status.ContainerStatuses = tt.initSays, tt.appSays
			}))
			require.Equal(t, tt.want, pod.AllRunning)
		})
	}
}
