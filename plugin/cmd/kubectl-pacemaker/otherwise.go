package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// otherwise returns why a pod that no limiter holds does not run, as its status reports.
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
	return "it is " + string(pod.Status.Phase) + ", and its status has no reason"
}

func oneLine(s string) string { return strings.TrimRight(strings.Join(strings.Fields(s), " "), ": ") }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
