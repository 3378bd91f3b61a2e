// Package journal sends what a logrus logger says to journald, with every field
// as a journal field of its own.
package journal

import (
	"bytes"
	"fmt"
	"io"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/logqueue"
)

// Identifier is the program's name in the journal.
const Identifier = "pod-pacemaker"

// send hands one entry to journald.
type send func(message string, priority journal.Priority, fields map[string]string) error

// Hook sends entries of every level to journald. It never blocks, and is safe for
// concurrent use. Make one with [Attach].
type Hook struct {
	queue    *logqueue.Queue
	send     send
	text     logrus.Formatter
	fallback io.Writer
}

// Reached reports whether journald listens on this machine.
func Reached() bool { return journal.Enabled() }

// IsStderr reports whether this process's stderr leads to the journal: systemd has
// started it.
func IsStderr() (bool, error) {
	is, err := journal.StderrIsJournalStream()
	if err != nil {
		return false, fmt.Errorf("look where stderr leads: %w", err)
	}
	return is, nil
}

// Attach makes the logger send all that it says to journald, through the queue, and
// write none of it elsewhere. What journald refuses is written to fallback as a line
// of text that says why.
func Attach(log *logrus.Logger, fallback io.Writer, q *logqueue.Queue) {
	attach(log, fallback, q, journal.Send)
}

func attach(log *logrus.Logger, fallback io.Writer, q *logqueue.Queue, s send) {
	log.SetOutput(io.Discard)
	log.SetFormatter(nothing{})
	log.AddHook(&Hook{queue: q, send: s, fallback: fallback, text: &logrus.TextFormatter{DisableColors: true}})
}

// Levels are all levels: the logger's own level decides what is said.
func (*Hook) Levels() []logrus.Level { return logrus.AllLevels }

// Fire queues one entry, spelled out now, because what a value refers to may change.
func (h *Hook) Fire(e *logrus.Entry) error {
	text, err := h.text.Format(e)
	if err != nil {
		return fmt.Errorf("spell a log entry as text: %w", err)
	}
	message, level, fields := message(e), priority(e.Level), vars(e)
	h.queue.Add(func() error {
		err := h.send(message, level, fields)
		if err != nil {
			if _, lost := fmt.Fprintf(h.fallback, "%s journal_error=%q\n", bytes.TrimSpace(text), err); lost == nil {
				return nil
			}
		}
		return err
	})
	return nil
}

// message returns the text of an entry with its error, as journalctl prints no other fields.
func message(e *logrus.Entry) string {
	if err, ok := e.Data[logrus.ErrorKey]; ok {
		return fmt.Sprintf("%s: %v", e.Message, err)
	}
	return e.Message
}

// vars returns the journal's fields of an entry.
func vars(e *logrus.Entry) map[string]string {
	vars := make(map[string]string, len(e.Data)+1)
	for key, value := range e.Data {
		name, text := field(key, value)
		vars[name] = text
	}
	vars["SYSLOG_IDENTIFIER"] = Identifier
	return vars
}

// priorities are those of the levels, which logrus counts from 0.
var priorities = [...]journal.Priority{
	journal.PriEmerg, journal.PriCrit, // panic, fatal
	journal.PriErr, journal.PriWarning, journal.PriInfo, journal.PriDebug,
}

func priority(level logrus.Level) journal.Priority {
	return priorities[min(int(level), len(priorities)-1)]
}

// nothing formats every entry as nothing: the hook has sent it.
type nothing struct{}

// Format returns no bytes.
func (nothing) Format(*logrus.Entry) ([]byte, error) { return nil, nil }
