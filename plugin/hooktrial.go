package plugin

import (
	"fmt"
	"sync"
	"time"
)

// Bounds of judging hooks that are lost.
const (
	// unheardMost is how many containers with a hook may come to nothing, one after
	// the other and none that did not between, until hooks are given up.
	unheardMost = 2
	// givenUpFor is how long they are given up first; each time that follows, until a
	// hook was heard of, is twice as long, up to givenUpMost. Pods that are deleted
	// before they start, and a runtime that fails for a moment, look the same, and must
	// not cost the gate for long. After each time one container at a time tries a hook:
	// where none ever works, so many containers fail once each, and only while pods wait.
	givenUpFor  = time.Minute
	givenUpMost = 10 * time.Minute
)

// hookTrial finds out whether the runtime takes hooks, by what becomes of the
// containers that got one. A validator of the runtime may reject them, which fails
// the container; the hook may not be executable on the host, which fails its
// start. The daemon is told of neither: only that the container goes away. To be a
// validator, too, would not help, for none learns what another one says, and would
// fail containers when the daemon is in trouble. And the runtime may not run the hook
// at all, or the hook not find the daemon: then containers start, and none was heard
// of before. Made by newHookTrial; safe for concurrent use.
type hookTrial struct {
	first time.Duration // how long hooks are given up first

	mu      sync.Mutex
	runtime processOfNode
	pending map[string]*trial // by container ID
	pods    map[string]bool   // by UID: one of its containers came to nothing with a hook
	proven  bool              // a container with a hook was made
	reached bool              // a hook has come to the gate
	unheard int
	against string        // why hooks are given up; empty: they are not
	until   time.Time     // when one container tries them again
	pause   time.Duration // how long they were given up last; 0: they are not
	suspect *trial        // whose failure spoke against hooks; nil: nothing is to be found out
}

// trial is one container that is being made.
type trial struct {
	uid, name string
	hook      bool
	tries     bool // hooks were given up when it began
	made      bool
}

func newHookTrial() *hookTrial {
	return &hookTrial{first: givenUpFor, pending: map[string]*trial{}, pods: map[string]bool{}}
}

// connected forgets what was found out about another runtime process; its
// configuration may be another. Where it cannot be told it counts as another.
func (h *hookTrial) connected(runtime processOfNode) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if runtime.pid == 0 || runtime != h.runtime {
		h.proven = false
		h.acquitLocked()
	}
	h.runtime = runtime
	clear(h.pending) // what became of them was not told
}

// givenUp tells why hooks are given up; empty: they are not. They are until one was
// heard of, though one container at a time may try.
func (h *hookTrial) givenUp() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.against
}

// bars tells why a pod's containers get no hook now; empty: they do.
func (h *hookTrial) bars(now time.Time, uid string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.against != "" && now.Before(h.until):
		return h.against
	case h.pods[uid]:
		return "a container of this pod came to nothing with a hook"
	default:
		return ""
	}
}

// begins takes note of a container that goes on, with the hook or without. One that
// tries hooks again is alone: the others get none until it is known what became of it,
// or for as long as that may take.
func (h *hookTrial) begins(now time.Time, id, uid, name string, hook bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tries := hook && h.against != ""
	if tries {
		h.until = now.Add(h.first)
	}
	again := h.suspect != nil && h.suspect.uid == uid && h.suspect.name == name
	if hook || again {
		h.pending[id] = &trial{uid: uid, name: name, hook: hook, tries: tries}
	}
}

// made takes note of a container that the runtime has made.
func (h *hookTrial) made(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.pending[id]
	if t == nil {
		return
	}
	t.made = true
	if t.hook {
		h.proven = true
		return
	}
	h.suspect = nil // it is made without the hook: that was the cause
	delete(h.pending, id)
}

// heard takes note of a hook that has come to the gate: hooks work.
func (h *hookTrial) heard(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reached = true
	delete(h.pending, id)
	h.acquitLocked()
}

// started takes note of a container that started. It gives what that says of hooks, once;
// empty: nothing new. One whose hook has not come to the gate, though others have, shows
// that the host executes hooks; one without a hook shows nothing.
func (h *hookTrial) started(now time.Time, id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.pending[id]
	if t == nil || !t.hook {
		return ""
	}
	delete(h.pending, id)
	if h.reached {
		h.acquitLocked()
		return ""
	}
	if !t.tries && h.against != "" {
		return ""
	}
	h.giveUpLocked(now, "a container with a hook started though its hook had not come to the daemon "+
		"(is the run directory the same folder on the host, and does the runtime run hooks?)")
	return h.against
}

// gone takes note of a container that came to its end, or to nothing. It gives
// what that says of hooks, once; empty: nothing new.
func (h *hookTrial) gone(now time.Time, id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.pending[id]
	if t == nil {
		return ""
	}
	delete(h.pending, id)
	switch {
	case !t.hook: // it came to nothing again: the hook was not the cause
		h.acquitLocked()
		delete(h.pods, t.uid)
		return ""
	case !t.made:
		h.pods[t.uid] = true
		if !t.tries && (h.proven || h.against != "") {
			return ""
		}
		h.suspect = t
		h.giveUpLocked(now, "the runtime did not make a container that got a hook (is default_validator.reject_oci_hook_adjustment set?)")
		return h.against
	}
	h.pods[t.uid] = true
	h.unheard++
	if !t.tries && (h.unheard < unheardMost || h.against != "") {
		return ""
	}
	h.giveUpLocked(now, fmt.Sprintf("%d containers with a hook came to nothing and their hooks were never heard of (can the host execute it?)", h.unheard))
	return h.against
}

// giveUpLocked gives up hooks for a time.
func (h *hookTrial) giveUpLocked(now time.Time, against string) {
	h.pause = min(max(2*h.pause, h.first), givenUpMost)
	h.against, h.until = against, now.Add(h.pause)
}

// acquitLocked has all containers get hooks again.
func (h *hookTrial) acquitLocked() {
	h.unheard, h.against, h.until, h.pause, h.suspect = 0, "", time.Time{}, 0, nil
}

// forget drops what is known of a pod that is gone.
func (h *hookTrial) forget(uid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pods, uid)
	if h.suspect != nil && h.suspect.uid == uid {
		// It will not be made again, so that nobody finds out whether hooks were the
		// cause: the next container tells.
		h.acquitLocked()
	}
	for id, t := range h.pending {
		if t.uid == uid {
			delete(h.pending, id)
		}
	}
}
