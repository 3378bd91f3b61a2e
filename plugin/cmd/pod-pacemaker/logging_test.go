package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	stdlog "log" //nolint:depguard // The daemon takes over the lines that libraries write with it.
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	systemd "github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// logged returns what say logs.
func logged(level, format string, stderr io.Writer, say func(*logrus.Logger)) {
	log, queue := newLogger(logFlags{level, format}, stderr)
	defer runLog(queue)()
	say(log)
}

// No process reads the daemon's stderr. The log does not stop the daemon, and its end does not wait for ever.
func TestABlockedStderrHoldsNothingUp(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close() // ends the blocked write
	s := newStage(nil)
	s.stderr = write
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code := make(chan int, 1)
	go func() { code <- s.run(ctx, []string{"run"}) }()
	<-s.puppet.running
	for range 3 * logCapacity {
		s.puppet.options.Log.WithField("pod_name", "web-3").Info("start admitted")
	}
	assert.Positive(t, s.puppet.options.LogDropped())
	cancel()
	assert.Equal(t, exitOK, <-code)
}

// The reader of the daemon's stderr has ended, such as a logger behind a pipe. Pods are paced without a log.
func TestAClosedStderrEndsNothing(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], "run", "--run-dir="+dir, "--state-dir=", "--http=", "--cni=off", "--gate-path=", "--nri-socket="+dir+"/none.sock", "--log-format=json")
	cmd.Env, cmd.Stderr = append(os.Environ(), asProgram+"=1", "KUBERNETES_SERVICE_HOST="), write
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	require.Eventually(t, func() bool {
		return admin.NewClient(adminSocket(dir)).Alive(ctx) == nil
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

// The libraries' own logs go the same way. This test changes the loggers that all tests share.
func TestLibrariesLogThroughTheDaemon(t *testing.T) {
	defer func() {
		klog.ClearLogger()
		logrus.SetOutput(os.Stderr)
		stdlog.SetOutput(os.Stderr)
		stdlog.SetFlags(stdlog.LstdFlags)
	}()
	var text written
	logged("info", formatText, &text, func(log *logrus.Logger) {
		logLibraries(log)
		logrus.Error("ttrpc: error receiving message")
		stdlog.Println("http: Accept error")
		stdlog.Println("http: TLS handshake error from 10.0.0.9:1234: EOF")
	})
	assert.Contains(t, text.String(), `level=error msg="ttrpc: error receiving message"`)
	assert.Contains(t, text.String(), `level=warning msg="http: Accept error" from=go`)
	assert.NotContains(t, text.String(), "handshake", "any client can cause any number of these")
}

func TestLogFormats(t *testing.T) {
	t.Parallel()
	var text, jsonText written
	logged("warn", formatText, &text, func(log *logrus.Logger) { log.Info("too small") })
	logged("info", formatText, &text, func(log *logrus.Logger) { log.WithField("pod_name", "web-3").Info("start admitted") })
	assert.Regexp(t, `^time="[^"]+" level=info msg="start admitted" pod_name=web-3\n$`, text.String())

	logged("debug", formatJSON, &jsonText, func(log *logrus.Logger) { log.WithField("pod_name", "web-3").Debug("start admitted") })
	var entry map[string]any
	require.NoError(t, json.Unmarshal([]byte(jsonText.String()), &entry))
	assert.Equal(t, "web-3", entry["pod_name"])
	assert.Equal(t, "debug", entry["level"])
}

// What a tenant wrote is one line of each format. journald gets the entry that the second hook sees.
func TestWhatIsLoggedIsData(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A", 64<<10)
	for _, format := range []string{formatText, formatJSON} {
		var out written
		var journald *logtest.Hook
		logged("info", format, &out, func(log *logrus.Logger) {
			journald = logtest.NewLocal(log)
			log.WithFields(logrus.Fields{"group": evil + long, "error": errors.New(evil), "ahead": 3, "stack": "a\n\tb"}).Info(evil + long)
		})
		text := strings.TrimSuffix(out.String(), "\n")
		assertPlain(t, text)
		assert.NotContains(t, text, "\n")
		assert.Less(t, len(text), 32<<10)
		entry := journald.LastEntry()
		assert.NotContains(t, entry.Message, "\n")
		assert.Equal(t, plainEvil, entry.Data["error"])
		assert.Equal(t, 3, entry.Data["ahead"])
		assert.Equal(t, "a\n\tb", entry.Data["stack"])
		assert.LessOrEqual(t, len(entry.Message), mostLogged)
		group, is := entry.Data["group"].(string)
		require.True(t, is)
		assertPlain(t, group)
		assert.LessOrEqual(t, len(group), mostLogged)
	}
}

func TestLogFormatIsTextUnlessStderrIsTheJournal(t *testing.T) {
	t.Setenv("JOURNAL_STREAM", "1:2")
	var plain written
	logged("info", formatAuto, &plain, func(log *logrus.Logger) { log.Info("a line") })
	assert.Contains(t, plain.String(), `level=info msg="a line"`)
	assert.NotContains(t, plain.String(), "level=warning")

	t.Setenv("JOURNAL_STREAM", "nonsense")
	var text written
	logged("info", formatAuto, &text, func(*logrus.Logger) {})
	assert.Contains(t, text.String(), `level=warning msg="logging as text: cannot find out`)
}

func TestWithoutAJournalTheLogIsText(t *testing.T) {
	t.Parallel()
	var text written
	logged("info", formatJournald, &text, func(*logrus.Logger) {})
	assert.Equal(t, !systemd.Enabled(), strings.Contains(text.String(), `level=warning msg="logging as text: journald does not listen`))
}

// The Kubernetes client's lines become entries, and so keep the format.
func TestKubernetesClientLogsThroughTheDaemon(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	logKubernetes(log)
	defer klog.ClearLogger()

	klog.ErrorS(errors.New("connection refused"), "Failed to watch", "type", "*v1.Pod")
	klog.Background().WithName("reflector").WithValues("node", "n").Info("Listing", "odd")
	klog.Flush()

	entries := hook.AllEntries()
	require.Len(t, entries, 2)
	assert.Equal(t, logrus.WarnLevel, entries[0].Level)
	assert.Equal(t, `"msg"="Failed to watch" "error"="connection refused" "type"="*v1.Pod"`, entries[0].Message)
	assert.Equal(t, logrus.DebugLevel, entries[1].Level)
	assert.Contains(t, entries[1].Message, `"msg"="Listing" "logger"="reflector" "node"="n"`)
	assert.Equal(t, "client-go", entries[1].Data["from"])
}
