package runtimetest

import (
	"context"
	"io"
	"sync/atomic"

	nrilog "github.com/containerd/nri/pkg/log"
	"github.com/sirupsen/logrus"
)

// nriLog is NRI's logger, the only one of the process. It is set before any test runs, because a plugin that looks for
// its runtime reads it, too.
var nriLog = func() *nriLogger {
	l := new(nriLogger)
	l.set(quiet())
	nrilog.Set(l)
	return l
}()

type nriLogger struct {
	to atomic.Pointer[logrus.FieldLogger]
}

func (n *nriLogger) set(to logrus.FieldLogger) { n.to.Store(&to) }

func (n *nriLogger) log() logrus.FieldLogger { return (*n.to.Load()).WithField("from", "nri") }

func (n *nriLogger) Debugf(_ context.Context, format string, args ...any) {
	n.log().Debugf(format, args...)
}
func (n *nriLogger) Infof(_ context.Context, format string, args ...any) {
	n.log().Debugf(format, args...)
}
func (n *nriLogger) Warnf(_ context.Context, format string, args ...any) {
	n.log().Warnf(format, args...)
}
func (n *nriLogger) Errorf(_ context.Context, format string, args ...any) {
	n.log().Errorf(format, args...)
}

func quiet() logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}
