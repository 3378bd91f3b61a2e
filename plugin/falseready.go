package plugin

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// A kubelet that was started anew reports a pod before it has begun to probe it (SyncPod
// sets the status, waits for volumes, then makes the probes' workers), and takes a
// container whose probe has no worker for ready. The worker starts after up to one period
// of its probe and takes that back. Since 1.35 it no longer does so of containers that are
// older than itself by 10 s and have a readiness probe; of those with a startup probe
// alone it never takes it back (https://github.com/kubernetes/kubernetes/issues/142305).
//
// What kubelet says of a start that began before itself is therefore believed when it said
// meanwhile that the pod is not ready, or said that it is ready when it had long begun with
// all pods, or has kept to its word for longer than it takes to probe; of a startup probe
// alone the node's own signs tell then.

const (
	// restartSlack is how far what is known of kubelet's start may be off; a container
	// that kubelet asked for just before its end may begin to run a moment after it.
	restartSlack = 2 * time.Second
	// beginsToProbe is how long kubelet may take from a pod's first report to the workers
	// of its probes, and from there to what the pod watch sees.
	beginsToProbe = 10 * time.Second
)

// vouched is which kubelet's word for a pod is known to rest on probes, and of which was
// said that it may not: each by its start.
type vouched struct{ probes, doubted time.Time }

// mayBeFalse tells until when the report that a pod is ready may not rest on its probes;
// zero: it does. began is when the first of the pod's probed containers began to run.
func mayBeFalse(pod podwatch.Pod, kubelet kubeletRun, began time.Time) (until time.Time) {
	window := pod.ProbeEvery + beginsToProbe
	switch {
	case kubelet.started.IsZero() || began.IsZero() || began.After(kubelet.started.Add(restartSlack)):
		return time.Time{} // it was not restarted during this start
	case !pod.ReadinessSince.Add(time.Second).After(kubelet.started):
		return time.Time{} // the kubelet before it said so, or nobody tells since when it is
	case !kubelet.works.IsZero() && pod.ReadinessSince.After(kubelet.works.Add(window)):
		return time.Time{} // it had been probing all pods for long
	}
	return pod.ReadinessSince.Add(window)
}

// tookBack tells whether the report that a pod is not ready shows that this kubelet has
// begun to probe it: it changed what it, or the one before, had said.
func tookBack(pod podwatch.Pod, kubelet kubeletRun) bool {
	return !kubelet.started.IsZero() && pod.ReadinessSince.After(kubelet.started.Add(restartSlack))
}

// doubt tells until when kubelet's word that a pod is ready may be false; zero: it is
// believed. Only starts under way are doubted.
func (p *pacer) doubt(pod podwatch.Pod, run progress) (until time.Time) {
	if !pod.Probed || !pod.ContainersReady || run.probed.IsZero() {
		return time.Time{}
	}
	kubelet := p.kubelet.known()
	until = mayBeFalse(pod, kubelet, run.probed)
	if until.IsZero() {
		return until
	}
	vouched, isNew := p.noteDoubt(pod.UID, kubelet.started)
	if vouched {
		return time.Time{}
	}
	if isNew {
		p.podLog(pod.UID, pod.Namespace+"/"+pod.Name).WithField("until", until).
			Info("kubelet was restarted, and may call the pod ready though it has not probed it: its start goes on")
	}
	return until
}

// noteDoubt tells whether the word for a pod of the kubelet that was started then is known
// to rest on the pod's probes, and if not, whether it is new that it may not.
func (p *pacer) noteDoubt(uid string, started time.Time) (vouched, isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[uid]
	if r == nil || r.word.probes.Equal(started) {
		return true, false
	}
	isNew = !r.word.doubted.Equal(started)
	r.word.doubted = started
	return false, isNew
}

// noteUnready takes note that kubelet says that a pod is not ready.
func (p *pacer) noteUnready(pod podwatch.Pod, run progress) {
	if !pod.ReadinessSince.After(run.probed) {
		return // it has said nothing else since
	}
	kubelet := p.kubelet.known()
	if !tookBack(pod, kubelet) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.records[pod.UID]; r != nil {
		r.word.probes = kubelet.started
	}
}

// isStarting tells whether the start of a pod holds a slot.
func (p *pacer) isStarting(uid string) bool {
	t := p.limiter.Lookup(uid)
	if t == nil {
		return false
	}
	state, _ := t.Status()
	return state == throttle.Starting
}

// kubeletAsks takes note that something is made for a pod. kubelet may start pods of its
// own before it has those of the API server.
func (p *pacer) kubeletAsks(now time.Time, r *record) {
	if r.fromAPI {
		p.kubelet.asks(now)
	}
}
