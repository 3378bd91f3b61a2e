package main

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// otherwise says of a pod that no limiter holds what its status tells.
func otherwise(pod corev1.Pod) string {
	if ready(pod) {
		return "it is ready"
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range statuses {
			if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
				return oneLine(fmt.Sprintf("container %s: %s: %s", c.Name, w.Reason, w.Message))
			}
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil && !c.Ready {
			return fmt.Sprintf("container %s runs, and its readiness probe has not succeeded yet", c.Name)
		}
	}
	if pod.Status.Message != "" {
		return oneLine(pod.Status.Message)
	}
	return "it is " + string(pod.Status.Phase) + ", and kubelet says no more"
}

// last is when an event happened last.
func last(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

func oneLine(s string) string { return strings.TrimRight(strings.Join(strings.Fields(s), " "), ": ") }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
