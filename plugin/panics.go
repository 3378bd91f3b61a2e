package plugin

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/sirupsen/logrus"
)

// restartAfter is the pause before a part that panicked goes on.
const restartAfter = time.Second

// caught is deferred around the part of the daemon that is named: it counts and
// logs a panic there, and lets the process live.
func (p *pacer) caught(part string) {
	if fault := recover(); fault != nil {
		p.panicked(part, fault, nil)
	}
}

// panicked counts and logs a panic.
func (p *pacer) panicked(part string, fault any, fields logrus.Fields) {
	p.countPanic(part)
	p.log.WithFields(fields).WithFields(logrus.Fields{
		"part": part, "panic": fault, "stack": string(debug.Stack()),
	}).Error("a part of the daemon failed, and goes on")
}

// countPanic counts a panic that was caught, and logged, in the part that is named.
func (p *pacer) countPanic(part string) { p.metrics.panics.WithLabelValues(part).Inc() }

// errPanicked stands for the error of a part that panicked.
var errPanicked = errors.New("a part of the daemon panicked")

// tried runs a part once; where it panicked, that is counted and logged, and the error
// is errPanicked.
func (p *pacer) tried(ctx context.Context, part string, run func(context.Context) error) (err error) {
	err = errPanicked //nolint:wastedassign // It is the result where run panics.
	defer p.caught(part)
	return run(ctx)
}

// supervised runs a part until it returns, and again when it panicked, until ctx ends.
// What the part uses up, it has to make itself.
func (p *pacer) supervised(ctx context.Context, part string, run func(context.Context) error) error {
	for {
		if err := p.tried(ctx, part, run); !errors.Is(err, errPanicked) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartAfter):
		}
	}
}
