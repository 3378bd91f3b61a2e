package waiting

import (
	"cmp"
	"maps"
	"sync"
	"time"
)

// Limits of the breaker.
const (
	// failuresMost is how many containers with a hook may fail in a row, without any hook contacting the
	// gate between, until the breaker trips. Those of one pod that are removed count once. If no hook ever
	// contacted the gate, one is enough.
	failuresMost = 2
	// tripsFirst is for how long the breaker trips first. Each time after that it trips for twice as long,
	// up to tripsMost. Pods that are deleted before they start look like failures, and must not make the
	// daemon give up the gate for long.
	tripsFirst = time.Minute
	tripsMost  = 10 * time.Minute
)

const (
	causeLost = "containers with a hook failed, and their hooks did not contact the daemon " +
		"(can the host execute the hook? Is default_validator.reject_oci_hook_adjustment set?)"
	causeSilent = "a container with a hook started though its hook had not contacted the daemon " +
		"(is the run directory the same folder on the host, is the hook that of this version, and does the runtime run hooks?)"
)

// breaker finds out whether hooks work. A hook contacts the gate before its container starts. The runtime may
// reject hooks or not run them, the host may be unable to execute them, or they may not find the daemon;
// nothing reports that to the daemon. While the breaker is tripped no container gets a hook; after a while one
// container tries again. A pod whose container failed with a hook never gets another. Make it with
// newBreaker. It is safe for concurrent use.
type breaker struct {
	first time.Duration // for how long it trips first

	mu       sync.Mutex
	pending  map[string]string // pods of containers whose hook has not contacted the gate, by container ID
	failed   map[string]bool   // pods of which a container failed with a hook
	failures int               // since a hook contacted the gate; plus one until the first has
	cause    string            // why the breaker is tripped; empty: it is not
	until    time.Time         // when one container may try
	trying   string            // the container that tried last
	pause    time.Duration     // for how long it tripped last
}

// newBreaker returns a breaker that is not tripped. first is for how long it trips first; 0: a minute.
func newBreaker(first time.Duration) *breaker {
	return &breaker{first: cmp.Or(first, tripsFirst), pending: map[string]string{}, failed: map[string]bool{}, failures: failuresMost - 1}
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
	case b.failed[uid]:
		return "a container of this pod failed with a hook"
	default:
		return ""
	}
}

// begins records a container that gets a hook. While the breaker is tripped, this container is the one that
// tries, and no other gets a hook for a while.
func (b *breaker) begins(now time.Time, id, uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending[id] = uid
	if b.cause != "" {
		b.trying, b.until = id, now.Add(b.first)
	}
}

// contact records a hook that has contacted the gate. It resets the breaker.
func (b *breaker) contact(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, id)
	b.failures, b.cause, b.pause = 0, "", 0
}

// trips records a container that started (causeSilent), or that ended or was never started (causeLost). It reports
// whether that trips the breaker for this cause. If any hook ever contacted the gate, one may have had no time to, but not
// several in a row: they may be the hooks of another version.
func (b *breaker) trips(now time.Time, id, cause string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	uid, hook := b.pending[id]
	delete(b.pending, id)
	if !hook || cause == causeLost && b.failed[uid] { // it may be the pod that cannot start
		return false
	}
	if cause == causeLost {
		b.failed[uid] = true
	}
	b.failures++
	if b.failures < failuresMost || b.cause != "" && id != b.trying { // if it is tripped, only the container that tries counts
		return false
	}
	b.pause = min(max(2*b.pause, b.first), tripsMost)
	b.cause, b.until = cause, now.Add(b.pause)
	return true
}

// connected forgets all pending containers: the runtime that is connected now may not report what happened
// to them.
func (b *breaker) connected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.pending)
}

// forget forgets a pod that is gone.
func (b *breaker) forget(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failed, uid)
	maps.DeleteFunc(b.pending, func(_, of string) bool { return of == uid })
}
