package waiting

import (
	"cmp"
	"maps"
	"sync"
	"time"
)

// Limits of the breaker.
const (
	// silentMost is how many containers with a hook may start in a row although their hooks did not contact the gate,
	// until the breaker trips. If no hook ever contacted the gate, one is enough.
	silentMost = 2
	// namespacesMost is in how many namespaces a pod must have failed with a hook, without any hook contacting the gate
	// between, until the breaker trips: the pods of one namespace keep no other pod out of the gate.
	namespacesMost = 2
	// tripsFirst is for how long the breaker trips first. Each time after that it trips for twice as long,
	// up to tripsMost. Pods that fail for another reason, which nothing reports, look like failures of hooks, and must
	// not make the daemon give up the gate for long.
	tripsFirst = time.Minute
	tripsMost  = 10 * time.Minute
)

const (
	causeLost = "containers with a hook failed, and their hooks did not contact the daemon " +
		"(can the host execute the hook? Is default_validator.reject_oci_hook_adjustment set?)"
	causeSilent = "a container with a hook started though its hook had not contacted the daemon " +
		"(is the run folder the same folder on the host, is the hook of this version, and does the runtime run hooks?)"
)

// breaker finds out whether hooks work. A hook contacts the gate before its container starts. The runtime may
// reject hooks or not run them, the host may be unable to execute them, or they may not find the daemon; the runtime
// reports none of that. kubelet's report tells a failure that is not the hook's (a bad mount, another plugin), which does
// not count. While the breaker is tripped no container gets a hook; after a while one
// container tries again. A pod whose container failed with a hook never gets another. Make it with
// newBreaker. It is safe for concurrent use.
type breaker struct {
	first time.Duration // for how long it trips first

	mu      sync.Mutex
	pending map[string]hooked   // containers whose hook has not contacted the gate, by ID
	failed  map[string]*failure // the pods that had a container that failed with a hook, by UID
	silent  int                 // containers that started without a hook that was heard, since one was; plus one until the first was
	cause   string              // why the breaker is tripped; empty if it is not
	until   time.Time           // when one container may try
	trying  string              // the container that tried last
	pause   time.Duration       // for how long it tripped last
}

// hooked is the pod of a container with a hook.
type hooked struct{ uid, namespace string }

// failure is the failure of a pod with a hook.
type failure struct {
	namespace string
	counts    bool // no hook contacted the gate since
}

// newBreaker returns a breaker that is not tripped. first is for how long it trips first. 0 means a minute.
func newBreaker(first time.Duration) *breaker {
	return &breaker{first: cmp.Or(first, tripsFirst), pending: map[string]hooked{}, failed: map[string]*failure{}, silent: silentMost - 1}
}

// tripped returns why the breaker is tripped, or "" if it is not.
func (b *breaker) tripped() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cause
}

// bars returns why the containers of a pod get no hook now, or "" if they do.
func (b *breaker) bars(now time.Time, uid string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.cause != "" && now.Before(b.until):
		return b.cause
	case b.failed[uid] != nil:
		return "a container of this pod failed with a hook"
	default:
		return ""
	}
}

// begins records a container that gets a hook. While the breaker is tripped, this container is the one that
// tries, and no other gets a hook for a while.
func (b *breaker) begins(now time.Time, id string, of hooked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending[id] = of
	if b.cause != "" {
		b.trying, b.until = id, now.Add(b.first)
	}
}

// notGiven records that a container has no hook: the runtime did not wait for the answer.
func (b *breaker) notGiven(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, id)
}

// contact records a hook that has contacted the gate. It resets the breaker.
func (b *breaker) contact(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, id)
	for _, f := range b.failed {
		f.counts = false
	}
	b.silent, b.cause, b.pause = 0, "", 0
}

// trips records a container that started (causeSilent), or that ended or was never started (causeLost). It reports
// whether that trips the breaker for this cause. If any hook ever contacted the gate, one may have had no time to, but not
// several in a row: they may be the hooks of another version.
func (b *breaker) trips(now time.Time, id, cause string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	of, hook := b.pending[id]
	delete(b.pending, id)
	switch {
	case !hook, cause == causeLost && b.failed[of.uid] != nil: // it may be the pod that cannot start
		return false
	case cause == causeLost:
		b.failed[of.uid] = &failure{namespace: of.namespace, counts: true}
	default:
		b.silent++
	}
	// While it is tripped, only the container that tries counts.
	if b.cause == "" && !b.enoughLocked() || b.cause != "" && id != b.trying {
		return false
	}
	b.pause = min(max(2*b.pause, b.first), tripsMost)
	b.cause, b.until = cause, now.Add(b.pause)
	return true
}

// enoughLocked reports whether so much has failed that hooks may not work.
func (b *breaker) enoughLocked() bool {
	namespaces := map[string]bool{}
	for _, f := range b.failed {
		if f.counts {
			namespaces[f.namespace] = true
		}
	}
	return b.silent >= silentMost || len(namespaces) >= namespacesMost
}

// explained records that a container with this ID, or the latest of this pod, failed for a reason that is not its hook. It
// takes back what followed from the failure.
func (b *breaker) explained(uid, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, id)
	failed := b.failed[uid] != nil
	delete(b.failed, uid)
	if failed && b.cause == causeLost && !b.enoughLocked() {
		b.cause, b.pause = "", 0
	}
}

// connected forgets all pending containers: the runtime that is connected now may not report what happened
// to them.
func (b *breaker) connected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.pending)
}

// forget forgets a pod that is gone, or about to be: that its hook does not contact the gate from now on says nothing. A
// breaker that is tripped stays so: controllers delete the pods that fail.
func (b *breaker) forget(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.pending, func(_ string, of hooked) bool { return of.uid == uid })
	delete(b.failed, uid)
}
