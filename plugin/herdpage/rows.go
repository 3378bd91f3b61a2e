package herdpage

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// span is how far back the page shows.
	span = 10 * time.Minute
	// most is how many rows it shows.
	most = 200
)

// Row is one pod. Its times are kubelet's, in whole seconds.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Bound is when kubelet took the pod over.
	Bound time.Time `json:"bound"`
	// Started is when its first process started, as far back as kubelet remembers: after two
	// restarts it is that of a later one. Zero: none has started.
	Started time.Time `json:"started,omitzero"`
	// Ready is since when it is ready; zero: it is not.
	Ready time.Time `json:"ready,omitzero"`
	// Ended is when it succeeded or failed; zero: it did not.
	Ended time.Time `json:"ended,omitzero"`
	// Restarts is how often its containers started again.
	Restarts int `json:"restarts,omitempty"`
}

// Rows gives a row for each pod that starts, or that became ready or ended within the ten
// minutes before now: the 200 that came last, in the order in which they came.
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
		return cmp.Or(a.Bound.Compare(b.Bound), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return rows[max(0, len(rows)-most):]
}

func rowOf(pod *corev1.Pod) Row {
	row := Row{Namespace: pod.Namespace, Name: pod.Name, Bound: pod.CreationTimestamp.Time}
	if t := pod.Status.StartTime; t != nil {
		row.Bound = t.Time
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
					row.sees(state.Running.StartedAt.Time)
				case state.Terminated != nil:
					row.sees(state.Terminated.StartedAt.Time)
				}
			}
			if t := c.State.Terminated; over && t != nil && t.FinishedAt.After(row.Ended) {
				row.Ended = t.FinishedAt.Time
			}
		}
	}
	return row
}

// sees takes the start of a process, if it is the earliest.
func (r *Row) sees(start time.Time) {
	if !start.IsZero() && (r.Started.IsZero() || start.Before(r.Started)) {
		r.Started = start
	}
}
