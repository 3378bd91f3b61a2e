package waiting

import (
	"cmp"
	"sync"
	"time"
)

// Bounds of the breaker.
const (
	// failuresMost is how many containers with a hook may fail one after the other, no hook
	// contacting the gate between, until the breaker opens. Where no hook ever has, the
	// first is enough.
	failuresMost = 2
	// openFirst is for how long the breaker opens, twice as long each time that follows, up
	// to openMost: pods that are deleted before they start look like failures, and must not
	// cost the gate for long.
	openFirst = time.Minute
	openMost  = 10 * time.Minute
)

const (
	causeLost = "containers with a hook came to nothing, and their hooks did not contact the daemon " +
		"(can the host execute the hook? Is default_validator.reject_oci_hook_adjustment set?)"
	causeSilent = "a container with a hook started though its hook had not contacted the daemon " +
		"(is the run directory the same folder on the host, and does the runtime run hooks?)"
)

// Breaker finds out whether hooks work: a hook contacts the gate before its container
// starts. The runtime may reject hooks, or not run them, the host may be unable to execute
// them, or they may not find the daemon; the daemon does not learn of it. While the breaker
// is open no container gets a hook; after a while one container tries. No pod whose
// container failed with a hook gets another. Make it with NewBreaker; it is safe for concurrent use.
type Breaker struct {
	first time.Duration // for how long it opens first

	mu        sync.Mutex
	pending   map[string]string // the pod of a container whose hook has not contacted the gate, by container ID
	failed    map[string]bool   // pods of which a container failed with a hook
	contacted bool              // any hook ever has
	failures  int               // since a hook contacted the gate
	cause     string            // why the breaker is open; empty: it is not
	until     time.Time         // when one container tries
	tries     string            // the container that tried last
	pause     time.Duration     // for how long it opened last
}

// NewBreaker returns a breaker that is closed; first is for how long it opens first, 0: a minute.
func NewBreaker(first time.Duration) *Breaker {
	return &Breaker{first: cmp.Or(first, openFirst), pending: map[string]string{}, failed: map[string]bool{}}
}

// opened tells why the breaker is open; empty: it is not.
func (b *Breaker) opened() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cause
}

// bars tells why a pod's containers get no hook now; empty: they do.
func (b *Breaker) bars(now time.Time, uid string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.cause != "" && now.Before(b.until):
		return b.cause
	case b.failed[uid]:
		return "a container of this pod came to nothing with a hook"
	default:
		return ""
	}
}

// begins takes note of a container that gets a hook. While the breaker is open it is the one
// that tries, for as long as that may take.
func (b *Breaker) begins(now time.Time, id, uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending[id] = uid
	if b.cause != "" {
		b.tries, b.until = id, now.Add(b.first)
	}
}

// contact takes note of a hook that has contacted the gate: hooks work.
func (b *Breaker) contact(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, id)
	b.contacted, b.failures, b.cause, b.pause, b.tries = true, 0, "", 0, ""
}

// Started takes note of a container that started. It gives the cause where the breaker opens
// for it. Where other hooks contact the gate, this one had no time to.
func (b *Breaker) Started(now time.Time, id string) (opens string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, hook := b.pending[id]; !hook {
		return ""
	}
	delete(b.pending, id)
	if b.contacted {
		return ""
	}
	return b.openLocked(now, id, causeSilent)
}

// Gone takes note of a container that came to its end, or to nothing. It gives the cause
// where the breaker opens for it.
func (b *Breaker) Gone(now time.Time, id string) (opens string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	uid, hook := b.pending[id]
	if !hook {
		return ""
	}
	delete(b.pending, id)
	b.failed[uid] = true
	if b.failures++; b.contacted && b.failures < failuresMost {
		return ""
	}
	return b.openLocked(now, id, causeLost)
}

// openLocked opens the breaker for a container that failed. While it is open, only the one
// that tries tells anything new.
func (b *Breaker) openLocked(now time.Time, id, cause string) (opens string) {
	if b.cause != "" && id != b.tries {
		return ""
	}
	b.pause = min(max(2*b.pause, b.first), openMost)
	b.cause, b.until = cause, now.Add(b.pause)
	return cause
}

// connected forgets the containers of which a runtime that was connected anew told nothing.
func (b *Breaker) connected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.pending)
}

// Forget drops what is known of a pod that is gone.
func (b *Breaker) Forget(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failed, uid)
	for id, of := range b.pending {
		if of == uid {
			delete(b.pending, id)
		}
	}
}
