package runtimetest

import (
	"context"
	"slices"
	"sync"

	nrilog "github.com/containerd/nri/pkg/log"
	"github.com/sirupsen/logrus"
)

// nriLogs gives the log of NRI's messages. NRI has one logger for the process, and does not
// say of which adaptation it speaks, so they go to the session that was started last
// of those that are open, and nowhere when none is. Requests that NRI handles can
// outlive their session; a closed one's log gets nothing more, because the test that
// it belongs to may be over. It is set before any test runs: a plugin that looks for its
// runtime reads NRI's logger, too.
var nriLogs = func() *sharedLog {
	s := new(sharedLog)
	nrilog.Set(nriLogger{s})
	return s
}()

type sharedLog struct {
	mu sync.RWMutex // read-held while a message is written
	// guarded by mu
	open []*logrus.FieldLogger // in the order of their start
}

// add opens a log. Once the function it gives has returned, nothing is written there.
func (s *sharedLog) add(l logrus.FieldLogger) (remove func()) {
	l = l.WithField("from", "nri")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, &l)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open = slices.DeleteFunc(s.open, func(other *logrus.FieldLogger) bool { return other == &l })
	}
}

func (s *sharedLog) write(message func(logrus.FieldLogger)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n := len(s.open); n > 0 {
		message(*s.open[n-1])
	}
}

// nriLogger has NRI's many informational messages written at debug level.
type nriLogger struct{ to *sharedLog }

func (n nriLogger) Debugf(_ context.Context, format string, args ...any) {
	n.to.write(func(l logrus.FieldLogger) { l.Debugf(format, args...) })
}
func (n nriLogger) Infof(_ context.Context, format string, args ...any) {
	n.to.write(func(l logrus.FieldLogger) { l.Debugf(format, args...) })
}
func (n nriLogger) Warnf(_ context.Context, format string, args ...any) {
	n.to.write(func(l logrus.FieldLogger) { l.Warnf(format, args...) })
}
func (n nriLogger) Errorf(_ context.Context, format string, args ...any) {
	n.to.write(func(l logrus.FieldLogger) { l.Errorf(format, args...) })
}
