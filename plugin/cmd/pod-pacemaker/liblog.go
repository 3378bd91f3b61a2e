package main

import (
	"bytes"
	stdlog "log" //nolint:depguard // It redirects what libraries write with it.
	"strings"

	"github.com/go-logr/logr/funcr"
	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"
)

// logLibraries makes the daemon's libraries, ttrpc and net/http among them, log to the daemon's log, which
// never blocks. It changes global state, so call it before anything uses these libraries.
func logLibraries(log *logrus.Logger) {
	logKubernetes(log)
	logrus.SetLevel(log.GetLevel())
	logrus.SetFormatter(log.Formatter)
	logrus.SetOutput(log.Out)
	logrus.StandardLogger().ReplaceHooks(log.Hooks)
	stdlog.SetFlags(0)
	stdlog.SetOutput(lines{log.WithField("from", "go")})
}

// lines logs each line as a warning, but failed TLS handshakes only at debug level: anyone can cause many of them.
type lines struct{ log logrus.FieldLogger }

func (l lines) Write(line []byte) (int, error) {
	write := l.log.Warn
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		write = l.log.Debug
	}
	write(string(bytes.TrimSpace(line)))
	return len(line), nil
}

// logKubernetes makes the Kubernetes client log to the daemon's log. Its errors become warnings, because the
// client repeats what failed; all else becomes debug. It changes global state, so call it before anything
// uses the client.
func logKubernetes(log *logrus.Logger) {
	entry := log.WithField("from", "client-go")
	klog.SetLogger(funcr.New(func(_, line string) {
		write := entry.Warn
		if strings.HasPrefix(line, `"level"=`) { // funcr starts every line that is not an error with it
			write = entry.Debug
		}
		write(line)
	}, funcr.Options{}))
}
