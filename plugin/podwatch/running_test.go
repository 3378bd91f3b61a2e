package podwatch

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestTrimAllRunning(t *testing.T) {
	t.Parallel()
	always, never, onFailure := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure
	proxy := with(container("proxy"), always)
	ruled := with(container("b"), never)
	ruled.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart}}
	type statuses = []corev1.ContainerStatus
	for name, c := range map[string]struct {
		policy    corev1.RestartPolicy // of the pod, Always when empty
		init, app []corev1.Container
		initState statuses
		appState  statuses
		want      bool
	}{
		"no status at all":     {app: []corev1.Container{container("a")}, want: false},
		"no container":         {want: false},
		"status of a stranger": {app: []corev1.Container{container("a")}, appState: statuses{running("b", 0)}, want: false},
		"one of one":           {app: []corev1.Container{container("a")}, appState: statuses{running("a", 3)}, want: true},
		"one of two reported": {
			app: []corev1.Container{container("a"), container("b")}, appState: statuses{running("a", 3)}, want: false,
		},
		"one of two runs": {
			app:      []corev1.Container{container("a"), container("b")},
			appState: statuses{running("a", 3), waiting("b", "ContainerCreating")}, want: false,
		},
		"the youngest counts": {
			app:      []corev1.Container{container("a"), container("b"), container("c")},
			appState: statuses{running("a", 3), running("b", 9), running("c", 5)}, want: true,
		},
		"an empty state is waiting": {
			app: []corev1.Container{container("a")}, appState: statuses{{Name: "a"}}, want: false,
		},
		"app before its sidecar": {
			init: []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			initState: statuses{waiting("proxy", "CrashLoopBackOff")}, appState: statuses{running("a", 1)}, want: false,
		},
		"sidecar not reported": {
			init: []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			appState: statuses{running("a", 1)}, want: false,
		},
		"sidecar and app": {
			init: []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			initState: statuses{running("proxy", 1)}, appState: statuses{running("a", 4)}, want: true,
		},
		"restarted sidecar is the youngest": {
			init: []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			initState: statuses{running("proxy", 8)}, appState: statuses{running("a", 4)}, want: true,
		},
		"sidecar alone": {
			init: []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			initState: statuses{running("proxy", 1)}, appState: statuses{waiting("a", "PodInitializing")}, want: false,
		},
		"an ended sidecar starts again": {
			policy: corev1.RestartPolicyNever,
			init:   []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			initState: statuses{ended("proxy", 0)}, appState: statuses{running("a", 1)}, want: false,
		},
		"an init container that runs is no start": {
			init: []corev1.Container{container("setup")}, app: []corev1.Container{container("a")},
			initState: statuses{running("setup", 1)}, appState: statuses{waiting("a", "PodInitializing")}, want: false,
		},
		"an ended init container does not count": {
			init: []corev1.Container{container("setup")}, app: []corev1.Container{container("a")},
			initState: statuses{ended("setup", 0)}, appState: statuses{running("a", 1)}, want: true,
		},
		"Always: an ended container comes back": {
			app:      []corev1.Container{container("a"), container("b")},
			appState: statuses{running("a", 1), ended("b", 0)}, want: false,
		},
		"OnFailure: one finished, one runs": {
			policy: corev1.RestartPolicyOnFailure, app: []corev1.Container{container("a"), container("b")},
			appState: statuses{running("a", 1), ended("b", 0)}, want: true,
		},
		"OnFailure: a failed one comes back": {
			policy: corev1.RestartPolicyOnFailure, app: []corev1.Container{container("a"), container("b")},
			appState: statuses{running("a", 1), ended("b", 1)}, want: false,
		},
		"Never: one failed, one runs": {
			policy: corev1.RestartPolicyNever, app: []corev1.Container{container("a"), container("b")},
			appState: statuses{running("a", 1), ended("b", 1)}, want: true,
		},
		"Never: all ended": {
			policy: corev1.RestartPolicyNever, app: []corev1.Container{container("a")},
			appState: statuses{ended("a", 0)}, want: false,
		},
		"a container's own Never": {
			app:      []corev1.Container{container("a"), with(container("b"), never)},
			appState: statuses{running("a", 1), ended("b", 1)}, want: true,
		},
		"a container's own OnFailure": {
			policy: corev1.RestartPolicyNever, app: []corev1.Container{container("a"), with(container("b"), onFailure)},
			appState: statuses{running("a", 1), ended("b", 1)}, want: false,
		},
		"restart rules may bring it back": {
			app:      []corev1.Container{container("a"), ruled},
			appState: statuses{running("a", 1), ended("b", 1)}, want: false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := trim(webPod(func(p *corev1.Pod) {
				if c.policy != "" {
					p.Spec.RestartPolicy = c.policy
				}
				p.Spec.InitContainers, p.Spec.Containers = c.init, c.app
				p.Status.InitContainerStatuses, p.Status.ContainerStatuses = c.initState, c.appState
			}))
			require.Equal(t, c.want, pod.AllRunning)
		})
	}
}
