package plugin

import (
	"time"

	"github.com/containerd/nri/pkg/api"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// sandboxStopped takes note of the end of a sandbox. The stop of one that was
// refused says nothing of the pod: it keeps its place. Of any other, whatever
// was starting in it is not any more.
func (p *pacer) sandboxStopped(sandbox *api.PodSandbox) {
	now := time.Now()
	if uid, ended := p.noteStopped(now, sandbox); ended {
		p.sandboxGone(now, uid)
	}
}

// noteStopped takes note of the end of a sandbox, and tells whether that was its
// pod's present one. Nothing runs in it any more, though the runtime has yet to tell of
// the exits, and the pod counts for no policy until it starts anew.
func (p *pacer) noteStopped(now time.Time, sandbox *api.PodSandbox) (uid string, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[podKey(sandbox)]
	if r == nil || r.sandbox != sandbox.GetId() {
		return "", false
	}
	r.leave(sandbox.GetId())
	p.keeper.Finished(now, r.uid)
	return r.uid, true
}

// sandboxGone ends a start whose sandbox is gone. A pod that waits keeps its
// place.
func (p *pacer) sandboxGone(now time.Time, uid string) {
	t := p.limiter.Lookup(uid)
	if t == nil {
		return
	}
	switch state, _ := t.Status(); state {
	case throttle.Starting:
		t.End(now, throttle.SandboxGone)
	case throttle.Waiting:
		t.Unreserve()
	}
}

func (p *pacer) sandboxRemoved(sandbox *api.PodSandbox) {
	p.sandboxStopped(sandbox)
	p.gate.sandboxes.removed(sandbox.GetId())
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[podKey(sandbox)]
	if r == nil {
		return
	}
	_, wasRefused := r.refused[sandbox.GetId()]
	delete(r.refused, sandbox.GetId())
	if p.pods == nil && !wasRefused && r.tried == sandbox.GetId() {
		// No API server will say that the pod was deleted. An older sandbox that
		// is cleared away says nothing of it.
		if t := p.limiter.Lookup(r.uid); t != nil {
			t.End(time.Now(), throttle.SandboxGone)
		}
	}
	p.forgetLocked(r)
}

func (p *pacer) containerStarted(sandbox *api.PodSandbox, ctr *api.Container) {
	p.holdAgainstHooks(p.gate.hooks.started(time.Now(), ctr.GetId()))
	r := p.noteStarted(sandbox, ctr)
	defer p.rejoin.came(ctr.GetId()) // once it is counted
	pod, known := p.watched(r.uid)
	p.countRunning(time.Now(), r.uid, pod)
	if pod.Containers[ctr.GetName()].Kind != podwatch.Ephemeral {
		p.countUnasked(r)
	}
	if known && p.limiter.Lookup(r.uid) != nil {
		p.podChanged(pod, false)
	}
}

// noteStarted takes note of a process that runs.
func (p *pacer) noteStarted(sandbox *api.PodSandbox, ctr *api.Container) *record {
	p.mu.Lock()
	defer p.mu.Unlock() // also when it panics: the next pod needs the lock
	r := p.recordOfLocked(sandbox)
	r.started(ctr, time.Now())
	return r
}

// countUnasked counts a start that went on without having been admitted: its hook
// left by itself, or nobody was asked. It holds a slot from now on, over the limit
// where reality is.
func (p *pacer) countUnasked(r *record) {
	if t := p.limiter.Lookup(r.uid); t != nil {
		state, reason := t.Status()
		if state == throttle.Starting || state == throttle.Started || reason == throttle.Deleted {
			return
		}
		if _, ok := p.shadowed(t); ok {
			return
		}
	}
	p.unpaced(r.uid, r.title(), unpacedNotAsked)
	p.find(time.Now(), r)
}

func (p *pacer) containerStopped(sandbox *api.PodSandbox, ctr *api.Container) {
	p.judgeHook(ctr)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.ownerLocked(sandbox, ctr); r != nil {
		p.stoppedLocked(r, ctr)
	}
}

func (p *pacer) stoppedLocked(r *record, ctr *api.Container) {
	now := time.Now()
	r.stopped(ctr, now)
	if p.pods != nil {
		pod, _ := p.pods.Get(r.uid)
		p.endExitedLocked(now, r, pod, false)
	}
}

// judgeHook finds out whether a container came to nothing because of its hook.
func (p *pacer) judgeHook(ctr *api.Container) {
	p.holdAgainstHooks(p.gate.hooks.gone(time.Now(), ctr.GetId()))
}

// holdAgainstHooks says why the gate is not used from now on; empty: nothing has changed.
func (p *pacer) holdAgainstHooks(against string) {
	if against != "" {
		p.log.WithField("no_gate", against).Warn("the gate is given up for a while: containers are refused instead")
		p.notices.node(corev1.EventTypeWarning, "GateGivenUp", "Containers are refused for a while instead of waiting in the gate: "+against)
	}
}

func (p *pacer) containerRemoved(sandbox *api.PodSandbox, ctr *api.Container) {
	p.judgeHook(ctr)
	p.rejoin.came(ctr.GetId())
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.ownerLocked(sandbox, ctr); r != nil {
		p.stoppedLocked(r, ctr)
		r.remove(ctr.GetId())
		p.forgetLocked(r)
	}
}

// ownerLocked finds the record of a container. Where the runtime has forgotten
// the sandbox, it tells no more than the container's ID. p.mu must be held.
func (p *pacer) ownerLocked(sandbox *api.PodSandbox, ctr *api.Container) *record {
	if r := p.records[podKey(sandbox)]; r != nil {
		return r
	}
	for _, r := range p.records {
		if r.containers[ctr.GetId()] != nil {
			return r
		}
	}
	return nil
}
