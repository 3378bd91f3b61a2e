// Package faultlog logs a fault once instead of at every try. It is here because crd and all packages of the daemon can
// import it.
package faultlog

import (
	"sync"

	"github.com/sirupsen/logrus"
)

// Log knows which fault was logged last. The zero value has logged none. It is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	last string
}

// Changed takes the fault of a try, empty if there was none, and reports whether the last try had another fault.
func (l *Log) Changed(fault string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := fault != l.last
	l.last = fault
	return changed
}

// Try logs the error of a try as a fault if the last try had another fault, and over when there is none any more.
func (l *Log) Try(to logrus.FieldLogger, err error, fault, over string) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case !l.Changed(text):
	case err != nil:
		to.WithError(err).Warn(fault)
	default:
		to.Info(over)
	}
}
