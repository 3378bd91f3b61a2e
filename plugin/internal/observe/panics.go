package observe

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

// restartAfter is the pause before a part that panicked goes on.
const restartAfter = time.Second

// Panics keeps the daemon alive when a part of it panics: each panic is recovered, counted and logged. It is part of
// an Observer.
type Panics struct {
	log   logrus.FieldLogger
	count *prometheus.CounterVec
}

// Caught is to be deferred in the named part of the daemon: it recovers, counts and logs a panic.
func (p Panics) Caught(part string) {
	if fault := recover(); fault != nil {
		p.Panicked(part, fault, nil)
	}
}

// Panicked counts and logs a panic that was recovered. The fields say, for the log, what the part was doing;
// they can be nil.
func (p Panics) Panicked(part string, fault any, fields logrus.Fields) {
	p.CountPanic(part)
	pod := ""
	if name, known := fields["pod_name"]; known {
		pod = fmt.Sprintf(" for pod %v/%v", fields["pod_namespace"], name)
	}
	p.log.WithFields(fields).WithFields(logrus.Fields{
		"part": part, "panic": fault, "stack": string(debug.Stack()),
	}).Errorf("caught a panic in %s%s: the daemon goes on", part, pod)
}

// CountPanic counts a panic of the named part that was recovered and logged elsewhere.
func (p Panics) CountPanic(part string) { p.count.WithLabelValues(part).Inc() }

// Supervised runs a part until it returns, and runs it again after a panic, until ctx ends. run is called anew then:
// it must not keep state between calls that a second call cannot use.
func (p Panics) Supervised(ctx context.Context, part string, run func(context.Context) error) error {
	for {
		var err error
		panicked := true
		func() {
			defer p.Caught(part)
			err = run(ctx)
			panicked = false
		}()
		if !panicked {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartAfter):
		}
	}
}
