package costs

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// MaxKeys bounds a Table; the key that was observed longest ago goes first.
	MaxKeys = 512
	// version is that of the encoded form; another is not read.
	version = 1
)

// ErrMachine is wrapped by the error of Decode about a table of another machine.
var ErrMachine = errors.New("learned on another machine")

// Machine is what the figures of a table depend on.
type Machine struct {
	CPU   string `json:"cpu"` // model
	Cores int    `json:"cores"`
}

// Table is what was learned of starts, by key. The zero value is an empty one. It is not safe for
// concurrent use.
type Table struct{ costs map[string]*Cost }

// Observe learns under each of the keys what a start took that ended now. Empty keys are passed over.
func (t *Table) Observe(keys []string, s Start, now time.Time) {
	for _, key := range keys {
		if key == "" {
			continue
		}
		if t.costs[key] == nil {
			t.put(key, Cost{})
		}
		t.costs[key].observe(s, now)
	}
	t.bound()
}

func (t *Table) put(key string, c Cost) {
	if t.costs == nil {
		t.costs = map[string]*Cost{}
	}
	t.costs[key] = &c
}

// bound forgets the keys that were observed longest ago, until there are no more than MaxKeys.
func (t *Table) bound() {
	for len(t.costs) > MaxKeys {
		oldest := ""
		for key, c := range t.costs {
			if oldest == "" || c.older(key, t.costs[oldest], oldest) {
				oldest = key
			}
		}
		delete(t.costs, oldest)
	}
}

// older is a total order, so that what is forgotten does not depend on that of a map.
func (c *Cost) older(key string, than *Cost, other string) bool {
	if order := c.Seen.Compare(than.Seen); order != 0 {
		return order < 0
	}
	return key < other
}

// Expect returns what was learned under the first of the keys that the table has; false: it has none.
// A key of which every start was killed is the last resort.
func (t *Table) Expect(keys []string) (e Expectation, known bool) {
	for i, key := range keys {
		c := t.costs[key]
		switch {
		case c == nil:
		case c.Count > 0:
			return Expectation{Cost: *c, Rank: i}, true
		case !known:
			e, known = Expectation{Cost: *c, Rank: i}, true
		}
	}
	return e, known
}

// All returns the keys, sorted, and what was learned under each.
func (t *Table) All() iter.Seq2[string, Cost] {
	return func(yield func(string, Cost) bool) {
		for _, key := range slices.Sorted(maps.Keys(t.costs)) {
			if !yield(key, *t.costs[key]) {
				return
			}
		}
	}
}

// file is the encoded form.
type file struct {
	Version int             `json:"version"`
	Machine Machine         `json:"machine"`
	Costs   map[string]Cost `json:"costs"`
}

// Encode returns the table as JSON, for Decode on the same machine.
func (t *Table) Encode(m Machine) ([]byte, error) {
	return json.MarshalIndent(file{Version: version, Machine: m, Costs: maps.Collect(t.All())}, "", " ")
}

// Decode returns an encoded table. It fails where the data is damaged or of another version, and with
// ErrMachine where the table is not of this machine.
func Decode(data []byte, m Machine) (*Table, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	switch {
	case f.Version != version:
		return nil, fmt.Errorf("version: %d: must be %d", f.Version, version)
	case f.Machine != m:
		return nil, fmt.Errorf("%w: %d x %q, this is %d x %q", ErrMachine, f.Machine.Cores, f.Machine.CPU, m.Cores, m.CPU)
	}
	t := &Table{}
	for key, c := range f.Costs {
		if key == "" || !c.valid() {
			return nil, fmt.Errorf("damaged: costs[%s]: no cost of a start", strings.ToValidUTF8(key, "?"))
		}
		t.put(key, c)
	}
	t.bound()
	return t, nil
}

func (c *Cost) valid() bool {
	for _, f := range []Figure{c.CPU, c.Alone, c.Idle, c.Peak, c.Disk} {
		if f.Mean < 0 || f.Deviation < 0 {
			return false
		}
	}
	return c.Count >= 0
}
