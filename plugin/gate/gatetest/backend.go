// Package gatetest decides starts at the gate by a test's hand.
package gatetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
)

// patience is how long a test waits for what must happen. Only a broken test or
// program ever comes near it.
const patience = 30 * time.Second

// TB is what a helper here needs of a [testing.TB].
type TB interface {
	Helper()
	Cleanup(f func())
	Fatalf(format string, args ...any)
}

// Backend is a [gate.Backend] whose verdicts a test gives. Make it with
// [NewBackend]; safe for concurrent use.
type Backend struct {
	// Deaf makes Wait go on after its context's end, until the verdict. Set it
	// before use.
	Deaf bool
	// Stuck makes Alive fail.
	Stuck atomic.Bool

	waits chan *Wait
}

// Wait is one call of [Backend.Wait].
type Wait struct {
	gate.Hello
	// Tell is the call's tell.
	SendTurn gate.SendTurn
	// Ended is closed when the call's context ended.
	Ended   <-chan struct{}
	outcome chan outcome
}

type outcome struct {
	verdict gate.Verdict
	err     error
	panics  any
}

// NewBackend returns a backend that was not asked yet.
func NewBackend() *Backend {
	return &Backend{waits: make(chan *Wait, 1024)}
}

// Wait implements [gate.Backend].
func (b *Backend) Wait(ctx context.Context, h gate.Hello, sendTurn gate.SendTurn) (gate.Verdict, error) {
	w := &Wait{Hello: h, SendTurn: sendTurn, Ended: ctx.Done(), outcome: make(chan outcome, 1)}
	b.waits <- w
	if b.Deaf {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case o := <-w.outcome:
		if o.panics != nil {
			panic(o.panics)
		}
		return o.verdict, o.err
	case <-ctx.Done():
		return gate.Verdict{}, ctx.Err()
	}
}

// Alive implements [gate.Backend].
func (b *Backend) Alive(context.Context) error {
	if b.Stuck.Load() {
		return errors.New("stuck")
	}
	return nil
}

// Next returns the next hook that waits.
func (b *Backend) Next(tb TB) *Wait {
	tb.Helper()
	return Receive(tb, b.waits, "a hook waits at the gate")
}

// Asked returns how many hooks wait that Next did not return.
func (b *Backend) Asked() int { return len(b.waits) }

// Decide ends the call with v.
func (w *Wait) Decide(v gate.Verdict) { w.outcome <- outcome{verdict: v} }

// Fail ends the call with err.
func (w *Wait) Fail(err error) { w.outcome <- outcome{err: err} }

// Panic makes the call panic with v.
func (w *Wait) Panic(v any) { w.outcome <- outcome{panics: v} }

// AwaitEnd waits for the end of the call's context.
func (w *Wait) AwaitEnd(tb TB) {
	tb.Helper()
	Receive(tb, w.Ended, "the call's context ends")
}

// Receive returns what comes on c, and fails the test where nothing does.
func Receive[T any](tb TB, c <-chan T, what string) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		tb.Fatalf("after %s still not: %s", patience, what)
		panic("not reached")
	}
}
