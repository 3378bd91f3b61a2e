package costs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// MaxKeys is how many keys a Table has at most. Of the namespace that has the most keys, it forgets the key that was
	// observed longest ago.
	MaxKeys = 512
	// version is the version of the encoded form. Decode reads no other.
	version = 2
)

// Machine is the machine on which a table was learned. The figures of another one mean nothing.
type Machine struct {
	CPU   string `json:"cpu"` // model
	Cores int    `json:"cores"`
}

// Table holds what was learned of starts, by key. The part of a key before the first '/' is its namespace. The zero value
// is empty. It is not safe for concurrent use.
type Table struct{ costs map[string]Cost }

// Observe learns, under each of the keys, what a start took that ended now. It ignores empty keys.
func (t *Table) Observe(keys []string, s Start, now time.Time) {
	if t.costs == nil {
		t.costs = map[string]Cost{}
	}
	for _, key := range keys {
		if key != "" {
			c := t.costs[key]
			c.observe(s, now)
			t.costs[key] = c
		}
	}
	t.trim()
}

// trim forgets keys until there are no more than MaxKeys: of the namespace that has the most, the one that was observed
// longest ago. So no namespace makes the table forget what it knows of one with fewer keys. Where that is equal, the
// first in the alphabet goes, so the result does not depend on the map's order.
func (t *Table) trim() {
	for len(t.costs) > MaxKeys {
		has := map[string]int{}
		for key := range t.costs {
			has[namespace(key)]++
		}
		delete(t.costs, slices.MinFunc(slices.Collect(maps.Keys(t.costs)), func(a, b string) int {
			return cmp.Or(cmp.Compare(has[namespace(b)], has[namespace(a)]), cmp.Compare(namespace(a), namespace(b)),
				t.costs[a].Seen.Compare(t.costs[b].Seen), cmp.Compare(a, b))
		}))
	}
}

func namespace(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// Expect returns what was learned under the first of the keys that the table has, and the index of that key, or -1 if it
// has none. A key with Count 0 counts only if the table has no other.
func (t *Table) Expect(keys []string) (c Cost, rank int) {
	rank = -1
	for i, key := range keys {
		found, has := t.costs[key]
		switch {
		case !has:
		case found.Count > 0:
			return found, i
		case rank < 0:
			c, rank = found, i
		}
	}
	return c, rank
}

// All returns a copy of what was learned under each key. It is never nil.
func (t *Table) All() map[string]Cost { return maps.Collect(maps.All(t.costs)) }

// Clone returns a copy of the table.
func (t *Table) Clone() *Table { return &Table{costs: t.All()} }

// file is the encoded form.
type file struct {
	Version int             `json:"version"`
	Machine Machine         `json:"machine"`
	Costs   map[string]Cost `json:"costs"`
}

// Encode returns the table as JSON, for Decode on the same machine.
func (t *Table) Encode(m Machine) ([]byte, error) {
	return json.MarshalIndent(file{Version: version, Machine: m, Costs: t.All()}, "", " ")
}

// Decode returns the table that Encode encoded. It returns an error if the data is damaged, of another
// version, or learned on another machine. What was observed later than now, by a clock that was set back
// since, counts as observed now.
func Decode(data []byte, m Machine, now time.Time) (*Table, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	switch {
	case f.Version != version:
		return nil, fmt.Errorf("version: %d: must be %d", f.Version, version)
	case f.Machine != m:
		return nil, fmt.Errorf("learned on another machine: %d x %q, this is %d x %q", f.Machine.Cores, f.Machine.CPU, m.Cores, m.CPU)
	}
	for key, c := range f.Costs {
		if c.Seen.After(now) {
			c.Seen = now
			f.Costs[key] = c
		}
	}
	t := &Table{costs: f.Costs}
	t.trim()
	return t, nil
}
