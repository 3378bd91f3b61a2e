package herdpage

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	span = 10 * time.Minute // that the page shows
	most = 200              // rows that the page shows
)

// Row is one pod. Its times are those that kubelet reports, in whole seconds.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Accepted is when kubelet accepted the pod.
	Accepted time.Time `json:"accepted"`
	// Started is when its first process started; zero if none has. kubelet reports only the last two processes of a
	// container, so after two restarts it is the start of a later process.
	Started time.Time `json:"started,omitzero"`
	// Ready is when the pod became ready; zero if it is not ready.
	Ready time.Time `json:"ready,omitzero"`
	// Ended is when the pod succeeded or failed; zero if it did not. It is Accepted if kubelet reports no container that
	// ended, as of a pod that it rejected.
	Ended time.Time `json:"ended,omitzero"`
	// Restarts is the number of restarts of its containers.
	Restarts int `json:"restarts,omitempty"`
}

// Rows returns a row for each pod that is starting, or that became ready or ended in the ten minutes before now. It
// returns at most the 200 newest, in the order in which kubelet accepted the pods.
func Rows(pods []corev1.Pod, now time.Time) []Row {
	rows := make([]Row, 0, len(pods))
	for i := range pods {
		row := rowOf(&pods[i])
		over := cmp.Or(row.Ended, row.Ready)
		if over.IsZero() || now.Sub(over) < span {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(a.Accepted.Compare(b.Accepted), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return rows[max(0, len(rows)-most):]
}

func rowOf(pod *corev1.Pod) Row {
	row := Row{Namespace: pod.Namespace, Name: pod.Name, Accepted: pod.CreationTimestamp.Time}
	if t := pod.Status.StartTime; t != nil {
		row.Accepted = t.Time
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			row.Ready = c.LastTransitionTime.Time
		}
	}
	over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			c := &statuses[i]
			row.Restarts += int(c.RestartCount)
			for _, state := range []*corev1.ContainerState{&c.LastTerminationState, &c.State} {
				switch {
				case state.Running != nil:
					row.processStarted(state.Running.StartedAt.Time)
				case state.Terminated != nil:
					row.processStarted(state.Terminated.StartedAt.Time)
				}
			}
			if t := c.State.Terminated; over && t != nil && t.FinishedAt.After(row.Ended) {
				row.Ended = t.FinishedAt.Time
			}
		}
	}
	if over && row.Ended.IsZero() {
		row.Ended = row.Accepted
		if row.Started.After(row.Ended) {
			row.Ended = row.Started // kubelet lost its containers, and knows of an earlier start alone
		}
	}
	return row
}

// processStarted sets Started if start is earlier.
func (r *Row) processStarted(start time.Time) {
	if !start.IsZero() && (r.Started.IsZero() || start.Before(r.Started)) {
		r.Started = start
	}
}
