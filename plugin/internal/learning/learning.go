// Package learning remembers what the starts of this node took, also over restarts of the daemon and the node, and
// expects what a pod's next start takes.
//
// A [Memory] finds the keys of a start, and keeps the [costs.Table] in a file. It measures nothing.
package learning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd/faultlog"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// writeEvery is the least time between two writes of the file.
const writeEvery = 30 * time.Second

// Memory is what was learned of starts. Make it with New. It is safe for concurrent use.
type Memory struct {
	path    string
	machine costs.Machine
	log     logrus.FieldLogger

	mu      sync.Mutex
	table   *costs.Table
	changed bool // since the file was written
}

// New returns an empty Memory for this machine, which is kept in the file at path, or in no file if path is empty.
func New(path string, m costs.Machine, log logrus.FieldLogger) *Memory {
	return &Memory{path: path, machine: m, log: log, table: &costs.Table{}}
}

// Basis is what an expectation is based on.
type Basis string

// The bases, in the order in which they are tried.
const (
	Owner     Basis = "Owner"     // starts of the same template
	Image     Basis = "Image"     // starts of the same images with the same commands, in the same namespace
	Revisions Basis = "Revisions" // starts of other templates of the same owner
	Namespace Basis = "Namespace" // all starts of the namespace: no start like this is known
	None      Basis = "None"      // nothing is known
)

// bases has the Basis of each key of a start, by rank.
var bases = [...]Basis{Owner, Image, Revisions, Namespace}

// Expectation is what a start is expected to take.
type Expectation struct {
	costs.Cost
	Basis Basis
	// Kind is equal for starts that are learned together: all starts of one template of an owner or,
	// for pods without an owner, all with the same images and commands. Starts with different CPU limits are of different
	// kinds, and so are first starts and restarts.
	Kind string
}

// keys returns the keys of the start of a pod, by rank. All are of its namespace: what other tenants start says nothing of
// it. A restart has its own: it finds its files in the page cache and
// its dependencies running, so it takes less than a first start.
func keys(pod podwatch.Pod, restart bool) (keys [len(bases)]string) {
	limit, again := "", ""
	if pod.Like.MilliCPU > 0 {
		limit = fmt.Sprintf(" cpu=%dm", pod.Like.MilliCPU)
	}
	if restart {
		again = " restart"
	}
	in := pod.Namespace + "/"
	if pod.Like.Owner != "" {
		keys[0], keys[2] = in+pod.Like.Owner+" template="+pod.Like.Revision+limit+again, in+pod.Like.Owner+again
	}
	keys[1], keys[3] = in+"images="+pod.Like.Images+limit+again, in+"all"+again
	return keys
}

// Expect returns what the next start of a pod is expected to take. restart reports whether it is a start after a crash.
// If nothing is known of such starts, or only of killed ones, Expect looks at restarts for a first start, and at first
// starts for a restart, before it takes what is known of all starts of the namespace. If nothing is known at all, the
// basis is None.
func (m *Memory) Expect(pod podwatch.Pod, restart bool) Expectation {
	of, other := keys(pod, restart), keys(pod, !restart)
	rest := len(of) - 1 // the key of the namespace is the last
	m.mu.Lock()
	defer m.mu.Unlock()
	cost, rank := m.table.Expect(slices.Concat(of[:rest], other[:rest], of[rest:]))
	e := Expectation{Cost: cost, Kind: cmp.Or(of[:]...)}
	switch rank {
	case -1:
		e.Basis = None
	case 2 * rest:
		e.Basis = Namespace
	default:
		e.Basis = bases[rank%rest]
	}
	return e
}

// Learn adds what the start of a pod took that ended now.
func (m *Memory) Learn(now time.Time, pod podwatch.Pod, restart bool, took costs.Start) {
	of := keys(pod, restart)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table.Observe(of[:], took, now)
	m.changed = true
}

// Costs returns what was learned. A key stands for similar starts: the starts of an owner and template, of images, of
// an owner, or of a namespace. It is a text for people.
func (m *Memory) Costs() map[string]costs.Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.table.All()
}

// Machine returns the machine of New.
func (m *Memory) Machine() costs.Machine { return m.machine }

// Load reads the file. It logs and ignores one that is damaged or of another machine. Call it before Learn.
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
		table, err = costs.Decode(data, m.machine, time.Now())
	}
	if err != nil {
		m.log.WithError(err).WithField("file", m.path).Warnf("cannot read the file of learned start costs, %s; starting without them", m.path)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table = table
}

// Run writes the file until ctx ends, every 30 seconds if anything was learned, and then a last time. It blocks, and
// returns nil.
func (m *Memory) Run(ctx context.Context) error {
	tick := time.Tick(writeEvery)
	var faults faultlog.Log
	write := func(put func(string, []byte, fs.FileMode) error) {
		faults.Try(m.log, m.write(put), "cannot write the file of learned start costs; a restart loses them", "the file of learned start costs is written again")
	}
	defer write(wholefile.WriteSoon) // what was learned during the last write, too; the next daemon waits for the end of this one
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
			write(wholefile.Write)
		}
	}
}

// write writes the file with put if anything was learned since the last time.
func (m *Memory) write(put func(string, []byte, fs.FileMode) error) error {
	table := m.toWrite()
	if table == nil {
		return nil
	}
	data, err := table.Encode(m.machine)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(m.path), 0o700)
	}
	if err == nil {
		err = put(m.path, data, 0o600)
	}
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.changed = true
	}
	return err
}

// toWrite returns a copy of the table if it is not in the file, else nil.
func (m *Memory) toWrite() *costs.Table {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.changed || m.path == "" {
		return nil
	}
	m.changed = false
	return m.table.Clone()
}
