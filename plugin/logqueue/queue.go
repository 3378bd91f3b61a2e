// Package logqueue is a queue between a logger and a sink that may block, such as a full pipe or a journald that hangs. The
// daemon logs inside handlers while the runtime holds its locks, so logging must not block.
package logqueue

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// reportEvery is the least time between two reports of dropped entries.
const reportEvery = time.Minute

// Queue takes entries without blocking and writes them one after the other. It drops and counts an entry when it is full,
// or when the entry cannot be written. Create it with [New]. Its methods are safe for concurrent use.
type Queue struct {
	entries chan func() error
	dropped atomic.Uint64
	onDrop  func(dropped uint64)

	// Only Run uses these.
	reported uint64 // dropped entries that onDrop knows of
	reports  rate.Sometimes
}

// New returns a queue with this capacity, which writes nothing before [Queue.Run]. When the queue has room again, Run calls
// onDrop, at most once a minute, with the number of entries that were dropped since the last call. onDrop may be nil, and
// may add entries.
func New(capacity int, onDrop func(dropped uint64)) *Queue {
	return &Queue{entries: make(chan func() error, capacity), onDrop: onDrop, reports: rate.Sometimes{Interval: reportEvery}}
}

// Add queues an entry, which Run writes by calling write. Add never blocks.
func (q *Queue) Add(write func() error) {
	select {
	case q.entries <- write:
	default:
		q.dropped.Add(1)
	}
}

// Dropped returns the number of dropped entries.
func (q *Queue) Dropped() uint64 { return q.dropped.Load() }

// Run writes entries until ctx ends, and then those that are still queued. It blocks as long as the sink does, also after
// the end of ctx, so a caller should not wait for it without a limit.
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
	for len(q.entries) > 0 { // no other goroutine takes entries
		q.write(<-q.entries)
	}
}

func (q *Queue) write(write func() error) {
	if write() != nil {
		q.dropped.Add(1) // the error cannot be logged anywhere
	}
}

// reportDropped calls onDrop if entries were dropped since the last call.
func (q *Queue) reportDropped() {
	dropped := q.Dropped()
	if dropped > q.reported && q.onDrop != nil {
		q.onDrop(dropped - q.reported)
	}
	q.reported = dropped
}

// Writer returns a writer that queues a copy of each line for w. It never blocks and never fails.
func (q *Queue) Writer(w io.Writer) io.Writer { return writer{q, w} }

type writer struct {
	queue *Queue
	to    io.Writer
}

func (w writer) Write(line []byte) (int, error) {
	text := append([]byte(nil), line...) // the caller reuses its buffer
	w.queue.Add(func() error {
		_, err := w.to.Write(text)
		return err //nolint:wrapcheck // it is only counted
	})
	return len(line), nil
}
