// Package journal sends what a logrus logger says to journald, with every field
// as a journal field of its own.
package journal

import (
	"fmt"
	"io"
	"maps"
	"strconv"
	"sync"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"
)

// Identifier is the program's name in the journal.
const Identifier = "pod-pacemaker"

// send hands one entry to journald.
type send func(message string, priority journal.Priority, fields map[string]string) error

// Hook sends entries of every level to journald. It never blocks longer than
// the socket does, and is safe for concurrent use. Make one with [Attach].
type Hook struct {
	send send
	text logrus.Formatter

	mu sync.Mutex
	// Guarded by mu.
	fallback io.Writer
	failed   bool // the last entry did not reach journald
}

// Reached tells whether journald listens on this machine.
func Reached() bool { return journal.Enabled() }

// IsStderr tells whether this process's stderr leads to the journal: systemd has
// started it.
func IsStderr() (bool, error) {
	is, err := journal.StderrIsJournalStream()
	if err != nil {
		return false, fmt.Errorf("look where stderr leads: %w", err)
	}
	return is, nil
}

// Attach makes the logger send all that it says to journald, and write none of it
// elsewhere. What journald does not take is written to fallback as a line of
// text, and why once per failure.
func Attach(log *logrus.Logger, fallback io.Writer) {
	attach(log, fallback, journal.Send)
}

func attach(log *logrus.Logger, fallback io.Writer, s send) {
	log.SetOutput(io.Discard)
	log.SetFormatter(nothing{})
	log.AddHook(&Hook{send: s, fallback: fallback, text: &logrus.TextFormatter{DisableColors: true}})
}

// Levels are all levels: the logger's own level decides what is said.
func (*Hook) Levels() []logrus.Level { return logrus.AllLevels }

// Fire sends one entry. It fails only where neither journald nor the fallback
// took it.
func (h *Hook) Fire(e *logrus.Entry) error {
	sendErr := h.send(e.Message, priority(e.Level), vars(e))
	h.mu.Lock()
	defer h.mu.Unlock()
	again := h.failed
	h.failed = sendErr != nil
	if sendErr == nil {
		return nil
	}
	// The entry is for others to read: this one adds to a copy.
	line := e.Dup()
	line.Level, line.Message, line.Data = e.Level, e.Message, maps.Clone(e.Data)
	if !again {
		line.Data["journal_error"] = sendErr.Error()
	}
	text, err := h.text.Format(line)
	if err != nil {
		return fmt.Errorf("journald: %w; as text: %w", sendErr, err)
	}
	if _, err := h.fallback.Write(text); err != nil {
		return fmt.Errorf("journald: %w; to the fallback: %w", sendErr, err)
	}
	return nil
}

// vars gives the journal's fields of an entry.
func vars(e *logrus.Entry) map[string]string {
	vars := make(map[string]string, len(e.Data)+4)
	for key, value := range e.Data {
		name, text := field(key, value)
		vars[name] = text
	}
	vars["SYSLOG_IDENTIFIER"] = Identifier
	if e.Caller != nil {
		vars["CODE_FILE"] = e.Caller.File
		vars["CODE_LINE"] = strconv.Itoa(e.Caller.Line)
		vars["CODE_FUNC"] = e.Caller.Function
	}
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

// Format gives no bytes.
func (nothing) Format(*logrus.Entry) ([]byte, error) { return nil, nil }
