package podwatch

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// killMargin is how much longer than its grace period a stop may take: the API server tells its end in whole seconds,
// kubelet gives a container 2 s after its preStop hook whatever is left, and a kill takes a moment.
const killMargin = 4 * time.Second

// addStop fills Deleting and StopsBy. It needs the containers.
func (pod *Pod) addStop(p *corev1.Pod) {
	if p.DeletionTimestamp != nil && !pod.Static {
		pod.Deleting, pod.StopsBy = true, p.DeletionTimestamp.Time
	}
	for _, c := range pod.Containers {
		if c.Running {
			return
		}
	}
	pod.StopsBy = time.Time{}
}

// Stopping returns a pod, as "namespace/name", that has a running container that was asked to stop, and by when its
// last container is killed; ok is false when there is none. Of several pods it is the one that may take longest. by is
// zero if the container should have been killed and kubelet still reports that it runs: it cannot be killed, or
// somebody shortened the grace period, and kubelet (1.36) did not shorten the stop under way. Of pods whose UIDs, as NRI
// uses them, are not in running, it knows that they have no container, unless running is nil. Until kubelet reports, a pod
// that has ended is said to run, for long where the node or the API server was away.
//
// It does not know of containers that kubelet stops by itself (a liveness probe fails, the pod is evicted or preempted, the
// node shuts down: kubelet reports these ends once all containers have ended), and of those of a static pod.
func (w *Watch) Stopping(now time.Time, running map[string]bool) (pod string, by time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, c := range w.pods {
		if c.pod.StopsBy.IsZero() || running != nil && !running[uid] {
			continue
		}
		name, end := c.pod.Namespace+"/"+c.pod.Name, c.pod.StopsBy.Add(killMargin)
		if !now.Before(end) {
			return name, time.Time{}, true
		}
		if end.After(by) {
			pod, by, ok = name, end, true
		}
	}
	return pod, by, ok
}

// Known reports whether the API server has a pod with this UID, as NRI uses it, that has not ended.
func (w *Watch) Known(uid string) bool {
	_, known := w.Get(uid)
	return known
}

// LargeMetadata returns how many bytes of labels and annotations the pods have that have more than least, by
// "namespace/name".
func (w *Watch) LargeMetadata(least int) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	large := map[string]int{}
	for _, c := range w.pods {
		if c.pod.Metadata > least {
			large[c.pod.Namespace+"/"+c.pod.Name] = c.pod.Metadata
		}
	}
	return large
}
