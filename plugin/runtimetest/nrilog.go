package runtimetest

import (
	"context"
	"sync"
	"sync/atomic"

	nrilog "github.com/containerd/nri/pkg/log"
	"github.com/sirupsen/logrus"
)

// NRI has one logger for the process. The first runtime puts ours there, which
// passes everything on to the runtime that was started last.
var (
	nriLogOnce sync.Once
	nriLogTo   atomic.Pointer[logrus.FieldLogger]
)

func setNRILog(l logrus.FieldLogger) {
	l = l.WithField("from", "nri")
	nriLogTo.Store(&l)
	nriLogOnce.Do(func() { nrilog.Set(nriLogger{}) })
}

// nriLogger passes NRI's messages on, its many informational ones at debug level.
type nriLogger struct{}

func (nriLogger) to() logrus.FieldLogger { return *nriLogTo.Load() }

func (n nriLogger) Debugf(_ context.Context, format string, args ...any) {
	n.to().Debugf(format, args...)
}
func (n nriLogger) Infof(_ context.Context, format string, args ...any) {
	n.to().Debugf(format, args...)
}
func (n nriLogger) Warnf(_ context.Context, format string, args ...any) {
	n.to().Warnf(format, args...)
}
func (n nriLogger) Errorf(_ context.Context, format string, args ...any) {
	n.to().Errorf(format, args...)
}
