// Package logqueue stands between those who log and a sink that may block: a full
// pipe, a journald that hangs. The daemon logs inside handlers, while the runtime
// holds its locks: who logs must not wait.
package logqueue

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// reportEvery is the least time between two reports of entries that were dropped.
const reportEvery = time.Minute

// Queue takes entries at once and writes them one after the other. An entry for
// which there is no room, or which the sink did not take, is dropped and counted.
// Make it with [New]; its methods are safe for concurrent use.
type Queue struct {
	entries chan func() error
	dropped atomic.Uint64
	onDrop  func(dropped uint64)

	// Only Run touches these.
	reported uint64 // of those dropped
	reports  rate.Sometimes
}

// New returns a queue with this capacity, which writes nothing before [Queue.Run].
// onDrop is called by Run, from time to time, with the number of entries that were
// dropped since it was last called, when there is room again; it can be nil.
// It may add entries.
func New(capacity int, onDrop func(dropped uint64)) *Queue {
	return &Queue{entries: make(chan func() error, capacity), onDrop: onDrop, reports: rate.Sometimes{Interval: reportEvery}}
}

// Add queues an entry, which Run writes. It never blocks.
func (q *Queue) Add(write func() error) {
	select {
	case q.entries <- write:
	default:
		q.dropped.Add(1)
	}
}

// Dropped counts the entries that were dropped.
func (q *Queue) Dropped() uint64 { return q.dropped.Load() }

// Run writes entries until ctx ends, and then those that are queued already. It
// blocks for as long as the sink does, also beyond the end of ctx: a caller that
// ends should not wait for it without a bound.
func (q *Queue) Run(ctx context.Context) {
	for {
		select {
		case write := <-q.entries:
			q.write(write)
		case <-ctx.Done():
			q.drain()
			q.reportDropped()
			q.drain()
			return
		}
		if roomy := len(q.entries) <= cap(q.entries)/2; roomy && q.Dropped() > q.reported {
			q.reports.Do(q.reportDropped)
		}
	}
}

// drain writes what is queued.
func (q *Queue) drain() {
	for len(q.entries) > 0 { // nobody else takes any
		q.write(<-q.entries)
	}
}

func (q *Queue) write(write func() error) {
	if write() != nil {
		q.dropped.Add(1) // the error cannot be logged anywhere
	}
}

// reportDropped calls onDrop for the entries that were dropped beyond those that were reported, if there are any.
func (q *Queue) reportDropped() {
	dropped := q.Dropped()
	if dropped > q.reported && q.onDrop != nil {
		q.onDrop(dropped - q.reported)
	}
	q.reported = dropped
}

// Writer returns a writer that queues a copy of what it is given, for w. It never
// blocks and never fails.
func (q *Queue) Writer(w io.Writer) io.Writer { return writer{q, w} }

type writer struct {
	queue *Queue
	to    io.Writer
}

func (w writer) Write(line []byte) (int, error) {
	text := append([]byte(nil), line...) // the caller uses its buffer again
	w.queue.Add(func() error {
		_, err := w.to.Write(text)
		return err //nolint:wrapcheck // It is only counted.
	})
	return len(line), nil
}
