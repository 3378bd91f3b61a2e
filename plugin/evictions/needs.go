package evictions

import "time"

const (
	// lingers is how long is watched on after the need for it has gone: the next often comes
	// soon, and every watch begins with a list.
	lingers = 30 * time.Second
	// acceptedWithin is how soon kubelet has accepted a pod, and has said so, unless it
	// preempts others for it. It then waits for the end of each for 10 s at least.
	acceptedWithin = time.Second
)

// waiters are the pods of a namespace that wait.
type waiters struct {
	count int
	until time.Time // when the namespace is watched no longer; while count is 0
}

// SetPressure takes over whether kubelet says that the node runs short of something.
func (w *Watch) SetPressure(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pressed = on
	w.wakeLocked()
}

// SetUnaccepted takes over whether a critical pod is bound to the node and kubelet has
// neither accepted nor rejected it yet. It may be called again with the same.
func (w *Watch) SetUnaccepted(uid string, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch _, known := w.critical.since[uid]; {
	case known == is:
		return
	case is:
		w.critical.since[uid] = time.Now()
	default:
		delete(w.critical.since, uid)
	}
	w.wakeLocked()
}

// Enter takes note that a pod of the namespace begins to wait, or one more of its
// containers does. Without a namespace, nothing is watched.
func (w *Watch) Enter(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.waiting[namespace]
	if all == nil {
		all = &waiters{}
		w.waiting[namespace] = all
	}
	all.count++
	w.wakeLocked()
}

// Leave is called once for every Enter, when that wait is over.
func (w *Watch) Leave(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.waiting[namespace]
	if all.count--; all.count > 0 {
		return
	}
	if w.watching[target{namespace, Eviction}] == nil && w.watching[target{namespace, Preemption}] == nil {
		delete(w.waiting, namespace)
		return
	}
	all.until = time.Now().Add(lingers)
	w.wakeLocked()
}

// causesLocked gives for which causes kubelet may take pods down now, and when to look
// again; zero: when something has changed. w.mu must be held.
func (w *Watch) causesLocked(now time.Time) (causes []Cause, next time.Time) {
	if w.pressed {
		causes = append(causes, Eviction)
	}
	preempts, next := w.critical.preempts(now)
	if preempts {
		causes = append(causes, Preemption)
	}
	return causes, next
}

// unaccepted are the critical pods that kubelet has not accepted yet.
type unaccepted struct {
	since map[string]time.Time // by UID: when the first was heard of it
	late  bool                 // kubelet was late with one of them when last looked
	until time.Time            // kubelet may preempt for others until then
}

// preempts tells whether kubelet may preempt pods now, and when to look again; zero: when
// something has changed.
func (u *unaccepted) preempts(now time.Time) (is bool, next time.Time) {
	late := false
	for _, since := range u.since {
		if at := since.Add(acceptedWithin); now.Before(at) {
			next = sooner(next, at)
		} else {
			late = true
		}
	}
	if u.late && !late {
		u.until = now.Add(lingers)
	}
	u.late = late
	if !late && now.Before(u.until) {
		return true, sooner(next, u.until)
	}
	return late, next
}

// sooner gives the earlier of two times; a is none if it is zero.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
