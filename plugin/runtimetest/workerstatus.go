package runtimetest

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// probe makes a container ready when its probes say so, or at once without any, and has it killed if one fails for good.
func (w *worker) probe(ctx context.Context, ended <-chan struct{}, name string, c *Container, p Program) {
	spec := specOf(w.pod, name)
	place := time.Duration(slices.IndexFunc(containersOf(w.pod), func(c corev1.Container) bool { return c.Name == name }))
	runs := c.Status().StartedAt.Add(place) // containers that began at the same moment are not probed at the same one
	answers := runs.Add(max(p.Ready, 1))
	if spec.ReadinessProbe == nil && spec.StartupProbe == nil && spec.LivenessProbe == nil {
		answers = runs
	}
	begun, fails := outcome(spec.StartupProbe, runs, time.Now(), answers) // a kubelet that was restarted counts anew
	if !fails && spec.ReadinessProbe == nil && spec.StartupProbe == nil {
		w.getsReady(name, c)
	}
	if !until(ctx, ended, begun) {
		return
	}
	if !fails {
		var killed time.Time
		if killed, fails = outcome(spec.LivenessProbe, runs, begun, answers); fails && !until(ctx, ended, killed) {
			return
		}
	}
	if fails {
		w.killSoon(name, c)
		return
	}
	ready := begun
	if spec.ReadinessProbe != nil {
		forGood := *spec.ReadinessProbe
		forGood.FailureThreshold = math.MaxInt32
		ready, _ = outcome(&forGood, runs, begun, answers)
	}
	if until(ctx, ended, ready) {
		w.getsReady(name, c)
	}
}

// outcome returns when a probe of a container succeeds, or fails as often in a row as it may. It begins once the
// container has started (begun), not before its initial delay, and at a full period after the container runs. Without a
// probe, it succeeds at once.
func outcome(p *corev1.Probe, runs, begun, answers time.Time) (at time.Time, fails bool) {
	if p == nil {
		return begun, false
	}
	period := time.Duration(cmp.Or(p.PeriodSeconds, 10)) * time.Second
	delayed := runs.Add(time.Duration(p.InitialDelaySeconds) * time.Second)
	failures := int32(0)
	for at = runs.Add(period); ; at = at.Add(period) {
		switch {
		case at.Before(begun), at.Before(delayed):
			continue
		case !at.Before(answers):
			return at, false
		}
		if failures++; failures >= cmp.Or(p.FailureThreshold, 3) {
			return at, true
		}
	}
}

// until waits. It returns false if the container or the kubelet ended first.
func until(ctx context.Context, ended <-chan struct{}, at time.Time) bool {
	timer := time.NewTimer(max(time.Until(at), 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ended:
		return false
	case <-ctx.Done():
		return false
	}
}

func (w *worker) getsReady(name string, c *Container) {
	w.mu.Lock()
	r := w.containers[name]
	becomes := r.container == c && !r.ready && r.exited.IsZero()
	if becomes {
		r.ready = true
		w.seen(Ready, name) // before another container's report tells it
	}
	w.mu.Unlock()
	if becomes {
		w.report()
	}
}

// killSoon makes the worker kill a container whose probe failed, when it is free.
func (w *worker) killSoon(name string, c *Container) {
	w.mu.Lock()
	r := w.containers[name]
	r.fails = r.container == c && r.exited.IsZero()
	w.mu.Unlock()
	w.wakeUp()
}

// kill kills the containers whose probes failed.
func (w *worker) kill(ctx context.Context) error {
	for _, c := range containersOf(w.pod) {
		w.mu.Lock()
		r := w.containers[c.Name]
		fails := r.fails
		r.fails = false
		w.mu.Unlock()
		if !fails {
			continue
		}
		w.seen(ProbeKills, c.Name)
		requests, cancel := context.WithTimeout(ctx, w.k.o.RequestTimeout+gracePeriod)
		err := r.container.Stop(requests, gracePeriod)
		cancel()
		if err != nil {
			w.mu.Lock()
			r.fails = true
			w.mu.Unlock()
			return err
		}
		w.exited(c.Name, r.container, r.container.Status())
		pause(ctx, aMoment) // no two things happen at the same nanosecond
	}
	return nil
}

// specOf returns a container of the spec.
func specOf(pod *corev1.Pod, name string) corev1.Container {
	all := containersOf(pod)
	return all[slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == name })]
}

// isSidecar reports whether an init container runs beside the app containers.
func isSidecar(c corev1.Container) bool {
	return ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}

// report reports the status of the pod.
func (w *worker) report() {
	w.mu.Lock()
	status := corev1.PodStatus{Phase: w.phaseLocked()}
	ready := corev1.ConditionTrue
	for _, c := range w.pod.Spec.InitContainers {
		s := w.statusLocked(c.Name)
		status.InitContainerStatuses = append(status.InitContainerStatuses, s)
		if isSidecar(c) && !s.Ready {
			ready = corev1.ConditionFalse
		}
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
		case isSidecar(c):
			if r.runs == 0 {
				return corev1.PodPending
			}
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
	s := corev1.ContainerStatus{Name: name, RestartCount: int32(max(r.made-1, 0)), Ready: r.ready}
	if r.container == nil {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: r.waiting, Message: r.message}
		return s
	}
	s.ContainerID = "containerd://" + r.container.ID()
	ended := &corev1.ContainerStateTerminated{ExitCode: int32(r.code), Reason: "Error", FinishedAt: metav1.NewTime(w.k.o.Runtime.wall(r.exited)), ContainerID: s.ContainerID}
	if r.failed != "" {
		ended.Reason, ended.Message = "StartError", r.failed
	}
	switch {
	case r.exited.IsZero() && !r.started.IsZero():
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.k.o.Runtime.wall(r.started))}
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
