package main

import (
	"io"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/journal"
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

// newLogger gives a logger that writes to stderr, or to journald.
func newLogger(level logLevel, format logFormat, stderr io.Writer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(stderr)
	log.SetLevel(levels[level])
	log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: time.RFC3339})
	var unclear error
	if format == formatAuto {
		format, unclear = detectFormat()
	}
	switch format {
	case formatJSON:
		log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	case formatJournald:
		journal.Attach(log, stderr)
	}
	if unclear != nil {
		log.WithError(unclear).Warn("logging as text")
	}
	return log
}

// detectFormat gives journald where stderr leads there, else text.
func detectFormat() (logFormat, error) {
	is, err := journal.IsStderr()
	if is {
		return formatJournald, err
	}
	return formatText, err
}
