package observe

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

// restartAfter is the pause before a part that panicked goes on.
const restartAfter = time.Second

// Panics lets the daemon live when a part of it panics: each is counted and logged. It is part of
// an Observer.
type Panics struct {
	log   logrus.FieldLogger
	count *prometheus.CounterVec
}

// Caught is deferred around the part of the daemon that is named.
func (p Panics) Caught(part string) {
	if fault := recover(); fault != nil {
		p.Panicked(part, fault, nil)
	}
}

// Panicked counts and logs a panic that was recovered.
func (p Panics) Panicked(part string, fault any, fields logrus.Fields) {
	p.CountPanic(part)
	p.log.WithFields(fields).WithFields(logrus.Fields{
		"part": part, "panic": fault, "stack": string(debug.Stack()),
	}).Error("a part of the daemon failed, and goes on")
}

// CountPanic counts a panic that was recovered, and logged, in the part that is named.
func (p Panics) CountPanic(part string) { p.count.WithLabelValues(part).Inc() }

// errPanicked stands for the error of a part that panicked.
var errPanicked = errors.New("a part of the daemon panicked")

// Tried runs a part once, and gives its error; where it panicked, the error says so.
func (p Panics) Tried(ctx context.Context, part string, run func(context.Context) error) (err error) {
	err = errPanicked //nolint:wastedassign // It is the result where run panics.
	defer p.Caught(part)
	return run(ctx)
}

// Supervised runs a part until it returns, and again when it panicked, until ctx ends.
// What the part uses up, it has to make itself.
func (p Panics) Supervised(ctx context.Context, part string, run func(context.Context) error) error {
	for {
		if err := p.Tried(ctx, part, run); !errors.Is(err, errPanicked) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartAfter):
		}
	}
}
