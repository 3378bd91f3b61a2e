package observe

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sirupsen/logrus"
)

// restartAfter is the pause before a part that panicked runs again.
const restartAfter = time.Second

// StackField is the field of a log entry with the stack of a panic, in lines.
const StackField = "stack"

// Caught recovers, counts and logs a panic of the named part of the daemon. Defer it. Where the part works for one pod,
// defer CaughtPod.
func (o *Observer) Caught(part string) {
	if fault := recover(); fault != nil {
		o.Panicked(part, fault, nil)
	}
}

// CaughtPod is Caught for a part that works for one pod: the log line names that pod. name is "namespace/name", as
// known at the defer.
func (o *Observer) CaughtPod(part, uid, name string) {
	if fault := recover(); fault != nil {
		o.Panicked(part, fault, Pod{uid, name}.fields())
	}
}

// Panicked counts and logs a panic that was recovered. fields are added to the log line; they may be nil. The message
// names the pod if fields has pod_name and pod_namespace.
func (o *Observer) Panicked(part string, fault any, fields logrus.Fields) {
	o.CountPanic(part)
	pod := ""
	if name, known := fields["pod_name"]; known {
		pod = fmt.Sprintf(" for pod %v/%v", fields["pod_namespace"], name)
	}
	o.log.WithFields(fields).WithFields(logrus.Fields{
		"part": part, "panic": fault, StackField: string(debug.Stack()),
	}).Errorf("caught a panic in %s%s, the daemon goes on: %v", part, pod, fault)
}

// CountPanic counts a panic of the named part that was recovered and logged elsewhere.
func (o *Observer) CountPanic(part string) { o.metrics.panics.WithLabelValues(part).Inc() }

// Supervised runs a part until it returns. After a panic it waits a second and calls run again, until ctx ends,
// so run must not leave state behind that a second call cannot use.
func (o *Observer) Supervised(ctx context.Context, part string, run func(context.Context) error) error {
	for {
		var err error
		panicked := true
		func() {
			defer o.Caught(part)
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
