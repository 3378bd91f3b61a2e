package runtimetest

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// probe makes a container ready at the end of the period of its probe after its program is, or at once without a probe.
func (w *worker) probe(ctx context.Context, ended <-chan struct{}, name string, c *Container, p Program) {
	period := probePeriod(w.pod, name)
	wait := time.Duration(0)
	if period > 0 {
		ready := c.Status().StartedAt.Add(max(p.Ready, 1))
		wait = ready.Sub(c.Status().StartedAt).Truncate(period) + period - time.Since(c.Status().StartedAt)
	}
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ended:
		return
	case <-ctx.Done():
		return
	}
	w.mu.Lock()
	r := w.containers[name]
	becomes := r.container == c && !r.ready && r.exited.IsZero()
	if becomes {
		r.ready = true
	}
	w.mu.Unlock()
	if becomes {
		w.seen(Ready, name)
		w.report()
	}
}

// probePeriod returns the period of a container's readiness probe, or 0 if it has none.
func probePeriod(pod *corev1.Pod, name string) time.Duration {
	for _, c := range containersOf(pod) {
		if c.Name == name && c.ReadinessProbe != nil {
			return time.Duration(max(c.ReadinessProbe.PeriodSeconds, 1)) * time.Second
		}
	}
	return 0
}

// report reports the status of the pod.
func (w *worker) report() {
	w.mu.Lock()
	status := corev1.PodStatus{Phase: w.phaseLocked()}
	ready := corev1.ConditionTrue
	for _, c := range w.pod.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, w.statusLocked(c.Name))
	}
	for _, c := range w.pod.Spec.Containers {
		s := w.statusLocked(c.Name)
		status.ContainerStatuses = append(status.ContainerStatuses, s)
		if !s.Ready {
			ready = corev1.ConditionFalse
		}
	}
	status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: ready}}
	w.pod.Status = status
	pod := w.pod.DeepCopy()
	w.mu.Unlock()
	w.k.o.Report(pod)
}

// phaseLocked returns the phase of the pod.
func (w *worker) phaseLocked() corev1.PodPhase {
	for _, c := range w.pod.Spec.InitContainers {
		r := w.containers[c.Name]
		switch {
		case r.exited.IsZero():
			return corev1.PodPending
		case r.code != 0 && r.overLocked(w.pod.Spec.RestartPolicy):
			return corev1.PodFailed
		case r.code != 0:
			return corev1.PodPending
		}
	}
	ended, failed, ran := 0, false, false
	for _, c := range w.pod.Spec.Containers {
		r := w.containers[c.Name]
		ran = ran || r.runs > 0
		if r.overLocked(w.pod.Spec.RestartPolicy) {
			ended++
			failed = failed || r.code != 0
		}
	}
	switch {
	case ended == len(w.pod.Spec.Containers) && failed:
		return corev1.PodFailed
	case ended == len(w.pod.Spec.Containers):
		return corev1.PodSucceeded
	case ran:
		return corev1.PodRunning
	}
	return corev1.PodPending
}

// statusLocked returns the status of a container.
func (w *worker) statusLocked(name string) corev1.ContainerStatus {
	r := w.containers[name]
	s := corev1.ContainerStatus{Name: name, RestartCount: r.restarts, Ready: r.ready}
	if r.container == nil {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: r.waiting, Message: r.message}
		return s
	}
	s.ContainerID = "containerd://" + r.container.ID()
	ended := &corev1.ContainerStateTerminated{ExitCode: int32(r.code), Reason: "Error", FinishedAt: metav1.NewTime(r.exited), ContainerID: s.ContainerID}
	if r.failed != "" {
		ended.Reason, ended.Message = "StartError", r.failed
	}
	switch {
	case r.exited.IsZero() && !r.started.IsZero():
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(r.started)}
	case r.waiting != "":
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: r.waiting, Message: r.message}
		if !r.exited.IsZero() {
			s.LastTerminationState.Terminated = ended
		}
	default:
		s.State.Terminated = ended
	}
	return s
}
