// Package learning remembers what the starts of this node took, also when the daemon or the node was
// restarted, and says what a pod's next start is expected to take.
//
// [Memory] gives each start its keys and keeps the [costs.Table] in a file. It measures nothing.
package learning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd/wholefile"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// writeEvery is the least time between two writes of the file.
const writeEvery = 30 * time.Second

// Memory is what was learned of starts. Make it with New; it is safe for concurrent use.
type Memory struct {
	path    string
	machine costs.Machine
	log     logrus.FieldLogger

	mu      sync.Mutex
	table   *costs.Table
	changed bool // since the file was written
}

// New returns a Memory of this machine that knows nothing, and is kept in the file at path; empty: in none.
func New(path string, m costs.Machine, log logrus.FieldLogger) *Memory {
	return &Memory{path: path, machine: m, log: log, table: &costs.Table{}}
}

// Basis says what an expectation rests on.
type Basis string

// The bases, in the order in which they are looked for.
const (
	Owner     Basis = "Owner"     // starts of the same template
	Image     Basis = "Image"     // starts of the same images with the same commands
	Revisions Basis = "Revisions" // starts of other templates of the same owner
	Node      Basis = "Node"      // all starts of the node: not known
	None      Basis = "None"      // not known
)

// bases are those of the keys, by rank.
var bases = [...]Basis{Owner, Image, Revisions, Node}

// Expectation is what a start is expected to take.
type Expectation struct {
	costs.Cost
	Basis Basis
}

// keys returns under which keys the start of a pod is learned. A restart, with all files in the
// page cache and all that it needs there, takes something else than a first start.
func keys(pod podwatch.Pod, restart bool) (keys [len(bases)]string) {
	limit, again := "", ""
	if pod.Like.MilliCPU > 0 {
		limit = fmt.Sprintf(" cpu=%dm", pod.Like.MilliCPU)
	}
	if restart {
		again = " restart"
	}
	if pod.Like.Owner != "" {
		owner := pod.Namespace + "/" + pod.Like.Owner
		keys[0], keys[2] = owner+" template="+pod.Like.Revision+limit+again, owner+again
	}
	keys[1], keys[3] = "images="+pod.Like.Images+limit+again, "node"+again
	return keys
}

// Kind returns what is the same of starts that are learned as one: the first of a pod's keys.
func Kind(pod podwatch.Pod, restart bool) string {
	of := keys(pod, restart)
	return cmp.Or(of[:]...)
}

// Expect returns what the next start of a pod is expected to take; restart: it is one after a crash. Where nothing is
// known of such starts, or nothing but how long they lasted until they were killed, what its other starts took is a
// better guess: restarts of first starts, and the other way round. Where nothing is known at all, the basis is None.
func (m *Memory) Expect(pod podwatch.Pod, restart bool) Expectation {
	of, other := keys(pod, restart), keys(pod, !restart)
	rest := len(of) - 1 // the node's own is the last
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.table.Expect(slices.Concat(of[:rest], other[:rest], of[rest:]))
	switch {
	case !known:
		return Expectation{Basis: None}
	case e.Rank == 2*rest:
		return Expectation{Cost: e.Cost, Basis: Node}
	}
	return Expectation{Cost: e.Cost, Basis: bases[e.Rank%rest]}
}

// Learn takes in what the start of a pod took that ended now.
func (m *Memory) Learn(now time.Time, pod podwatch.Pod, restart bool, took costs.Start) {
	of := keys(pod, restart)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table.Observe(of[:], took, now)
	m.changed = true
}

// Costs returns what was learned, by key.
func (m *Memory) Costs() map[string]costs.Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Collect(m.table.All())
}

// Machine returns the machine on which all this was learned.
func (m *Memory) Machine() costs.Machine { return m.machine }

// Load takes in what the file holds. A file that is damaged or of another machine is logged and left
// out. To be called before anything is learned.
func (m *Memory) Load() {
	if m.path == "" {
		return
	}
	data, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var table *costs.Table
	if err == nil {
		table, err = costs.Decode(data, m.machine)
	}
	if err != nil {
		m.log.WithError(err).WithField("file", m.path).Warn("what starts took is left out, and learned anew")
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table = table
}

// Run keeps the file up to date until ctx ends, and writes it a last time then.
func (m *Memory) Run(ctx context.Context) error {
	tick := time.Tick(writeEvery)
	said := ""
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick:
		}
		fault := ""
		if err := m.write(); err != nil {
			fault = err.Error()
		}
		if fault != "" && fault != said {
			m.log.WithField("reason", fault).Warn("what starts took cannot be kept on disk: the next daemon learns it anew")
		}
		said = fault
	}
	return nil
}

// write writes the file if anything was learned since.
func (m *Memory) write() error {
	data, err := m.encode()
	if data == nil || err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(m.path), 0o700); err == nil {
		err = wholefile.Write(m.path, data, 0o600)
	}
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.changed = true
	}
	return err
}

func (m *Memory) encode() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.changed || m.path == "" {
		return nil, nil
	}
	m.changed = false
	return m.table.Encode(m.machine)
}
