// Package gatetest lets a test decide the starts in the gate.
package gatetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
)

// testTimeout is how long a test waits for something that must happen.
const testTimeout = 30 * time.Second

// Backend is a [gate.Backend] whose verdicts come from a test. Make it with [NewBackend]. It is safe for concurrent
// use.
type Backend struct {
	// Deaf makes Wait ignore the end of its context until the verdict. Set it before use.
	Deaf bool
	// Stuck makes Alive fail.
	Stuck atomic.Bool

	waits chan *Wait
}

// Wait is one call of [Backend.Wait].
type Wait struct {
	gate.Hello
	// SendForecast is the argument of the call.
	SendForecast gate.SendForecast
	// Ended is closed when the call's context ended.
	Ended   <-chan struct{}
	outcome chan outcome
}

type outcome struct {
	verdict gate.Verdict
	err     error
	panics  any
}

// NewBackend returns a backend without calls.
func NewBackend() *Backend {
	return &Backend{waits: make(chan *Wait, 1024)}
}

// Wait implements [gate.Backend].
func (b *Backend) Wait(ctx context.Context, h gate.Hello, sendForecast gate.SendForecast) (gate.Verdict, error) {
	w := &Wait{Hello: h, SendForecast: sendForecast, Ended: ctx.Done(), outcome: make(chan outcome, 1)}
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

// Next returns the next waiting hook.
func (b *Backend) Next(tb testing.TB) *Wait {
	tb.Helper()
	return Receive(tb, b.waits, "a hook waits in the gate")
}

// Asked returns the number of waiting hooks that Next has not returned.
func (b *Backend) Asked() int { return len(b.waits) }

// Decide ends the call with v.
func (w *Wait) Decide(v gate.Verdict) { w.outcome <- outcome{verdict: v} }

// Fail ends the call with err.
func (w *Wait) Fail(err error) { w.outcome <- outcome{err: err} }

// Panic makes the call panic with v.
func (w *Wait) Panic(v any) { w.outcome <- outcome{panics: v} }

// AwaitEnd waits for the end of the call's context.
func (w *Wait) AwaitEnd(tb testing.TB) {
	tb.Helper()
	Receive(tb, w.Ended, "the call's context ends")
}

// Receive returns the next value of c. It fails the test if none comes in time.
func Receive[T any](tb testing.TB, c <-chan T, what string) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testTimeout):
		tb.Fatalf("after %s still not: %s", testTimeout, what)
		panic("not reached")
	}
}
