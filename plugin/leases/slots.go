package leases

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// record is what matters of a Lease.
type record struct {
	id      string // of its group
	n       int    // which slot
	name    string
	holder  string
	uid     types.UID
	version uint64
	lasts   time.Duration
	since   time.Time // when the holder took it, by its own clock
}

// slot is what this node knows of one slot.
type slot struct {
	record
	gone bool      // there is no Lease; version is the last that is known
	past bool      // the store has gone back: what is seen next counts, whatever its version
	seen time.Time // when this node saw that
	// until when nothing is tried with it: an answer is awaited, or an attempt has failed.
	busy     bool
	retry    time.Time
	failures int
	refused  int       // conflicts in a row, since something was seen of it
	sweep    time.Time // when it is deleted, if nobody renews it before
}

// freeAt tells from when on somebody else may take the slot. It is this node's own
// observation that counts, not what clock of another node stands in the Lease.
func (s *slot) freeAt() time.Time {
	if s.gone || s.holder == "" {
		return s.seen
	}
	return s.seen.Add(s.lasts)
}

// cache is what this node knows of all slots, by group and number; nil is one that
// nobody ever saw, which is free since ever.
type cache map[string][]*slot

func (c cache) get(id string, n int) *slot {
	if slots := c[id]; n < len(slots) {
		return slots[n]
	}
	return nil
}

func (c cache) set(s *slot) {
	slots := c[s.id]
	for len(slots) <= s.n {
		slots = append(slots, nil)
	}
	slots[s.n] = s
	c[s.id] = slots
}

// put takes over what was seen of a Lease, and gives the slot, or nil where it is known
// better already.
func (c cache) put(now time.Time, r record, gone bool) *slot {
	s := c.get(r.id, r.n)
	if s == nil {
		s = &slot{record: r}
		c.set(s)
	} else if !s.past && (r.version < s.version || r.version == s.version && (s.gone || !gone)) {
		return nil
	}
	s.record, s.gone, s.past, s.seen = r, gone, false, now
	s.retry, s.failures, s.refused, s.sweep = time.Time{}, 0, 0, time.Time{}
	return s
}

// all gives the slots of which something is known.
func (c cache) all(id string) iter.Seq[*slot] {
	return func(yield func(*slot) bool) {
		for _, s := range c[id] {
			if s != nil && !yield(s) {
				return
			}
		}
	}
}

// forget drops the groups that nobody needs and of which there is no Lease.
func (c cache) forget(needed func(id string) bool) {
	for id := range c {
		if needed(id) {
			continue
		}
		there := false
		for s := range c.all(id) {
			there = there || !s.gone || s.busy
		}
		if !there {
			delete(c, id)
		}
	}
}
