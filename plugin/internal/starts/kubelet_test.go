package starts

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// becomesKnown makes the pod watch report the pod for the first time.
func (p *testPod) becomesKnown(changes ...func(*podwatch.Pod)) {
	p.n.watch.pods[p.uid] = podwatch.Pod{
		UID: p.uid, Namespace: p.sandbox.GetNamespace(), Name: p.uid, RestartPolicy: "Always", Probed: true, Phase: corev1.PodPending,
		Containers: map[string]podwatch.Container{"app": {Kind: podwatch.App}},
	}
	p.told(changes...)
}

// told makes the pod watch report changes of the pod.
func (p *testPod) told(changes ...func(*podwatch.Pod)) {
	p.step()
	known := p.n.watch.pods[p.uid]
	for _, change := range changes {
		change(&known)
	}
	p.n.watch.pods[p.uid] = known
	p.n.PodChanged(time.Now(), known, false)
}

// reports makes kubelet report the containers that have begun to run, and the changes.
func (p *testPod) reports(changes ...func(*podwatch.Pod)) {
	p.told(func(pod *podwatch.Pod) {
		containers := map[string]podwatch.Container{}
		for name, c := range pod.Containers {
			if id := p.running[name]; id != "" {
				c.ID, c.Running = id, true
			}
			containers[name] = c
		}
		pod.Containers, pod.Phase, pod.AllRunning = containers, corev1.PodRunning, true
		for _, change := range changes {
			change(pod)
		}
	})
}

// getsReady makes kubelet report the containers as ready.
func (p *testPod) getsReady() { p.reports(func(pod *podwatch.Pod) { pod.ContainersReady = true }) }

// containers gives a pod containers of these kinds.
func containers(kinds map[string]podwatch.Kind) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) {
		pod.Containers = map[string]podwatch.Container{}
		for name, kind := range kinds {
			pod.Containers[name] = podwatch.Container{Kind: kind}
		}
	}
}
