package main

import (
	"context"
	"io"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/journal"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/logqueue"
)

const (
	// logCapacity is how many entries wait for a sink that does not take them; of an
	// ordinary size they are about 1 MiB.
	logCapacity = 4096
	// logFlush bounds how long the end of the process waits for its log.
	logFlush = 2 * time.Second
)

// logFormat is how the daemon logs.
type logFormat string

const (
	formatAuto     logFormat = "auto"
	formatText     logFormat = "text"
	formatJSON     logFormat = "json"
	formatJournald logFormat = "journald"
)

// logLevel is the least grave of what the daemon logs.
type logLevel string

const (
	levelDebug logLevel = "debug"
	levelInfo  logLevel = "info"
	levelWarn  logLevel = "warn"
	levelError logLevel = "error"
)

var levels = map[logLevel]logrus.Level{
	levelDebug: logrus.DebugLevel, levelInfo: logrus.InfoLevel,
	levelWarn: logrus.WarnLevel, levelError: logrus.ErrorLevel,
}

// newLogger returns a logger that writes to stderr, or to journald, through a queue,
// so that who logs never waits for them.
func newLogger(level logLevel, format logFormat, stderr io.Writer) (*logrus.Logger, *logqueue.Queue) {
	log := logrus.New()
	queue := logqueue.New(logCapacity, func(dropped uint64) {
		log.WithField("dropped", dropped).Warn("log entries were dropped: what takes the log was stuck or too slow")
	})
	log.SetOutput(queue.Writer(stderr))
	log.SetLevel(levels[level])
	log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: time.RFC3339})
	var unclear error
	if format == formatAuto { // journald where stderr leads there, else text
		var is bool
		if is, unclear = journal.IsStderr(); is {
			format = formatJournald
		}
	}
	switch format {
	case formatJSON:
		log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	case formatJournald:
		journal.Attach(log, stderr, queue)
	}
	if unclear != nil {
		log.WithError(unclear).Warn("logging as text")
	}
	return log, queue
}

// runLog writes what is logged until flush is called, which waits a moment for what
// is queued.
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
