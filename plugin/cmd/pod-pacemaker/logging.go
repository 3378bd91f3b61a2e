package main

import (
	"context"
	"fmt"
	"io"
	"time"

	systemd "github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/journal"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/logqueue"
)

const (
	// logCapacity is how many entries wait for a slow sink; at their usual size they take about 1 MiB.
	logCapacity = 4096
	// logFlush is how long the process waits at its end for queued entries, at most.
	logFlush = 2 * time.Second
)

// The formats of the log.
const (
	formatAuto     = "auto"
	formatText     = "text"
	formatJSON     = "json"
	formatJournald = "journald"
)

type logFlags struct{ level, format string }

// add declares the flags with their defaults.
func (f *logFlags) add(cmd *cobra.Command) {
	f.level, f.format = "info", formatAuto
	addChoice(cmd, &f.level, "log-level", "", "lowest level of messages to log", "debug", "info", "warn", "error")
	addChoice(cmd, &f.format, "log-format", "", "format of the log; auto is journald if systemd started the process, else text", formatAuto, formatText, formatJSON, formatJournald)
}

// newLogger returns a logger that writes to stderr or journald through a queue, so that logging never
// blocks.
func newLogger(flags logFlags, stderr io.Writer) (*logrus.Logger, *logqueue.Queue) {
	log := logrus.New()
	log.AddHook(plainEntries{})
	queue := logqueue.New(logCapacity, func(dropped uint64) {
		log.WithField("dropped", dropped).Warnf("%d log entries were dropped: the log's reader was blocked or too slow", dropped)
	})
	log.SetOutput(queue.Writer(stderr))
	_ = log.Level.UnmarshalText([]byte(flags.level)) // the flag accepts only levels
	log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: time.RFC3339})
	switch flags.format {
	case formatJSON:
		log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	case formatJournald:
		if systemd.Enabled() {
			journal.Attach(log, queue)
		} else {
			log.Warn("logging as text: journald does not listen on this machine")
		}
	case formatAuto:
		if is, err := systemd.StderrIsJournalStream(); is {
			journal.Attach(log, queue)
		} else if err != nil {
			log.WithError(err).Warn("logging as text: cannot find out whether stderr is the journal")
		}
	}
	return log, queue
}

// Limits of a log entry, in bytes.
const (
	mostLogged = 4 << 10  // of the message, and of each field
	mostStack  = 16 << 10 // of the stack of a panic
)

// plainEntries makes every entry plain text, whatever the format: only the stack of a panic has several lines. It must be
// the first hook.
type plainEntries struct{}

// Levels implements logrus.Hook.
func (plainEntries) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook. The entry is a copy that logrus makes for the hooks and the formatter.
func (plainEntries) Fire(e *logrus.Entry) error {
	e.Message = plain.Line(e.Message, mostLogged)
	for key, value := range e.Data {
		text := fmt.Sprint(value)
		switch value.(type) {
		case bool, int, int32, int64, uint64, float64, time.Duration: // numbers stay numbers in JSON
		default:
			e.Data[key] = plain.Line(text, mostLogged)
		}
		if key == observe.StackField {
			e.Data[key] = plain.Text(text[:min(len(text), mostStack)])
		}
	}
	return nil
}

// runLog writes queued entries until flush is called. flush waits for the rest, at most for logFlush.
func runLog(queue *logqueue.Queue) (flush func()) {
	ctx, end := context.WithCancel(context.Background())
	written := make(chan struct{})
	go func() {
		defer close(written)
		queue.Run(ctx)
	}()
	return func() {
		end()
		select {
		case <-written:
		case <-time.After(logFlush):
		}
	}
}
