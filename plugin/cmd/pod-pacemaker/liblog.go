package main

import (
	"bytes"
	stdlog "log" //nolint:depguard // What libraries write with it is taken over.

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"
)

// logLibraries sends what the libraries of the daemon log to the daemon's log: ttrpc
// and net/http, too, log while something waits for them. It concerns the whole
// process, and has to be called before anything uses them.
func logLibraries(log *logrus.Logger) {
	logKubernetes(log)
	logrus.SetLevel(log.GetLevel())
	logrus.SetFormatter(log.Formatter)
	logrus.SetOutput(log.Out)
	logrus.StandardLogger().ReplaceHooks(log.Hooks)
	stdlog.SetFlags(0)
	stdlog.SetOutput(lines{log.WithField("from", "go")})
}

// lines makes a warning of each line.
type lines struct{ log logrus.FieldLogger }

func (l lines) Write(line []byte) (int, error) {
	l.log.Warn(string(bytes.TrimSpace(line)))
	return len(line), nil
}

// logKubernetes sends what the Kubernetes client logs to the daemon's log, where
// it would otherwise break the format of stderr. It concerns the whole process,
// and has to be called before anything uses that client.
func logKubernetes(log *logrus.Logger) {
	klog.SetLogger(logr.New(kubernetesLog{log.WithField("from", "client-go")}))
}

// kubernetesLog is a logr.LogSink. What the client calls an error concerns one
// attempt, which it repeats.
type kubernetesLog struct{ log logrus.FieldLogger }

// Init does nothing.
func (kubernetesLog) Init(logr.RuntimeInfo) {}

// Enabled lets everything through: the level of the daemon's log decides.
func (kubernetesLog) Enabled(int) bool { return true }

// Info logs as debug.
func (k kubernetesLog) Info(_ int, msg string, pairs ...any) { k.with(pairs).log.Debug(msg) }

// Error logs as a warning.
func (k kubernetesLog) Error(err error, msg string, pairs ...any) {
	k.with(pairs).log.WithField(logrus.ErrorKey, err).Warn(msg)
}

// WithValues adds fields.
func (k kubernetesLog) WithValues(pairs ...any) logr.LogSink { return k.with(pairs) }

// WithName names the part of the client.
func (k kubernetesLog) WithName(name string) logr.LogSink {
	return kubernetesLog{k.log.WithField("logger", name)}
}

func (k kubernetesLog) with(pairs []any) kubernetesLog {
	fields := logrus.Fields{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if key, ok := pairs[i].(string); ok {
			fields[key] = pairs[i+1]
		}
	}
	return kubernetesLog{k.log.WithFields(fields)}
}
