package podwatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestTrimAllRunning(t *testing.T) {
	t.Parallel()
	always, never, onFailure := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure
	proxy := with(container("proxy"), always)
	ruled := with(container("b"), never)
	ruled.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart}}
	const no = time.Duration(-1)
	type statuses = []corev1.ContainerStatus
	for name, c := range map[string]struct {
		policy    corev1.RestartPolicy // of the pod, Always when empty
		init, app []corev1.Container
		initState statuses
		appState  statuses
		want      time.Duration // RunningSince after noon; no: not AllRunning
	}{
		"no status at all":     {app: []corev1.Container{container("a")}, want: no},
		"no container":         {want: no},
		"status of a stranger": {app: []corev1.Container{container("a")}, appState: statuses{running("b", 0)}, want: no},
		"one of one":           {app: []corev1.Container{container("a")}, appState: statuses{running("a", 3)}, want: 3},
		"one of two reported": {
			app: []corev1.Container{container("a"), container("b")}, appState: statuses{running("a", 3)}, want: no,
		},
		"one of two runs": {
			app:      []corev1.Container{container("a"), container("b")},
			appState: statuses{running("a", 3), waiting("b", "ContainerCreating")}, want: no,
		},
		"the youngest counts": {
			app:      []corev1.Container{container("a"), container("b"), container("c")},
			appState: statuses{running("a", 3), running("b", 9), running("c", 5)}, want: 9,
		},
		"an empty state is waiting": {
			app: []corev1.Container{container("a")}, appState: statuses{{Name: "a"}}, want: no,
		},
		"app before its sidecar": {
			init: []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			initState: statuses{waiting("proxy", "CrashLoopBackOff")}, appState: statuses{running("a", 1)}, want: no,
		},
		"sidecar not reported": {
			init: []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			appState: statuses{running("a", 1)}, want: no,
		},
		"sidecar and app": {
			init: []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			initState: statuses{running("proxy", 1)}, appState: statuses{running("a", 4)}, want: 4,
		},
		"restarted sidecar is the youngest": {
			init: []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			initState: statuses{running("proxy", 8)}, appState: statuses{running("a", 4)}, want: 8,
		},
		"sidecar alone": {
			init: []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			initState: statuses{running("proxy", 1)}, appState: statuses{waiting("a", "PodInitializing")}, want: no,
		},
		"an ended sidecar starts again": {
			policy: corev1.RestartPolicyNever,
			init:   []corev1.Container{proxy}, app: []corev1.Container{container("a")},
			initState: statuses{ended("proxy", 0)}, appState: statuses{running("a", 1)}, want: no,
		},
		"an init container that runs is no start": {
			init: []corev1.Container{container("setup")}, app: []corev1.Container{container("a")},
			initState: statuses{running("setup", 1)}, appState: statuses{waiting("a", "PodInitializing")}, want: no,
		},
		"an ended init container does not count": {
			init: []corev1.Container{container("setup")}, app: []corev1.Container{container("a")},
			initState: statuses{ended("setup", 0)}, appState: statuses{running("a", 1)}, want: 1,
		},
		"Always: an ended container comes back": {
			app:      []corev1.Container{container("a"), container("b")},
			appState: statuses{running("a", 1), ended("b", 0)}, want: no,
		},
		"OnFailure: one finished, one runs": {
			policy: corev1.RestartPolicyOnFailure, app: []corev1.Container{container("a"), container("b")},
			appState: statuses{running("a", 1), ended("b", 0)}, want: 1,
		},
		"OnFailure: a failed one comes back": {
			policy: corev1.RestartPolicyOnFailure, app: []corev1.Container{container("a"), container("b")},
			appState: statuses{running("a", 1), ended("b", 1)}, want: no,
		},
		"Never: one failed, one runs": {
			policy: corev1.RestartPolicyNever, app: []corev1.Container{container("a"), container("b")},
			appState: statuses{running("a", 1), ended("b", 1)}, want: 1,
		},
		"Never: all ended": {
			policy: corev1.RestartPolicyNever, app: []corev1.Container{container("a")},
			appState: statuses{ended("a", 0)}, want: no,
		},
		"a container's own Never": {
			app:      []corev1.Container{container("a"), with(container("b"), never)},
			appState: statuses{running("a", 1), ended("b", 1)}, want: 1,
		},
		"a container's own OnFailure": {
			policy: corev1.RestartPolicyNever, app: []corev1.Container{container("a"), with(container("b"), onFailure)},
			appState: statuses{running("a", 1), ended("b", 1)}, want: no,
		},
		"restart rules may bring it back": {
			app:      []corev1.Container{container("a"), ruled},
			appState: statuses{running("a", 1), ended("b", 1)}, want: no,
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
			require.Equal(t, c.want != no, pod.AllRunning)
			if c.want == no {
				require.True(t, pod.RunningSince.IsZero())
				return
			}
			require.True(t, noon.Add(c.want).Equal(pod.RunningSince), "%v", pod.RunningSince)
		})
	}
}
