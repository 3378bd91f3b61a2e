package main

import (
	"bytes"
	stdlog "log" //nolint:depguard // What libraries write with it is taken over.
	"strings"

	"github.com/go-logr/logr/funcr"
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

// lines makes a warning of each line, but of those about clients that do not speak TLS: anybody can send as many of them.
type lines struct{ log logrus.FieldLogger }

func (l lines) Write(line []byte) (int, error) {
	say := l.log.Warn
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		say = l.log.Debug
	}
	say(string(bytes.TrimSpace(line)))
	return len(line), nil
}

// logKubernetes sends what the Kubernetes client logs to the daemon's log, where
// it would otherwise break the format of stderr. What the client calls an error concerns one
// attempt, which it repeats: it becomes a warning, all else debug. It concerns the whole process,
// and has to be called before anything uses that client.
func logKubernetes(log *logrus.Logger) {
	entry := log.WithField("from", "client-go")
	klog.SetLogger(funcr.New(func(_, line string) {
		say := entry.Warn
		if strings.HasPrefix(line, `"level"=`) { // funcr begins those that are no errors with it
			say = entry.Debug
		}
		say(line)
	}, funcr.Options{}))
}
