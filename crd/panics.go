package crd

import (
	"runtime/debug"

	"github.com/sirupsen/logrus"
)

// OnPanic has f told of every panic that Run catches, or that of the Policies which follow
// this source, with the part of the work in which it was. It is to be called before Run.
func (s *Source) OnPanic(f func(part string)) { s.onPanic = f }

// caught is deferred around a part of the work: where that panics, what is in force
// stays so, for one object must not end the daemons of all nodes.
func (s *Source) caught(part string) {
	if fault := recover(); fault != nil {
		s.panicked(part, fault, nil)
	}
}

// panicked logs a panic, and tells of it.
func (s *Source) panicked(part string, fault any, fields logrus.Fields) {
	s.log.WithFields(fields).WithFields(logrus.Fields{"part": part, "panic": fault, "stack": string(debug.Stack())}).
		Error("a part of following the PacemakerConfigs and StartPolicies failed, and goes on")
	s.onPanic(part)
}
