package journal

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// journald is a journal that keeps what it gets, or takes nothing.
type journald struct {
	mu      sync.Mutex
	away    error
	entries []entry
}

type entry struct {
	message  string
	priority journal.Priority
	fields   map[string]string
}

func (j *journald) take(message string, priority journal.Priority, fields map[string]string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.away != nil {
		return j.away
	}
	j.entries = append(j.entries, entry{message, priority, fields})
	return nil
}

func newLogger(j *journald) (*logrus.Logger, *bytes.Buffer) {
	log, fallback := logrus.New(), &bytes.Buffer{}
	log.SetLevel(logrus.DebugLevel)
	attach(log, fallback, j.take)
	return log, fallback
}

func TestEntryReachesTheJournalWithItsFields(t *testing.T) {
	t.Parallel()
	j := &journald{}
	log, fallback := newLogger(j)
	log.WithFields(logrus.Fields{
		"pod_namespace": "default", "pod_name": "web-3", "pod_uid": "u-1",
		"container_id": "c0ffee", "reason": "Free", "wait_ms": int64(14200),
	}).Info("start admitted")

	require.Len(t, j.entries, 1)
	assert.Equal(t, entry{"start admitted", journal.PriInfo, map[string]string{
		"POD_NAMESPACE": "default", "POD_NAME": "web-3", "POD_UID": "u-1",
		"CONTAINER_ID": "c0ffee", "REASON": "Free", "WAIT_MS": "14200",
		"SYSLOG_IDENTIFIER": "pod-pacemaker",
	}}, j.entries[0])
	assert.Empty(t, fallback.String(), "it was said twice")
}

func TestEveryLevelHasAPriority(t *testing.T) {
	t.Parallel()
	j := &journald{}
	log, _ := newLogger(j)
	log.SetLevel(logrus.TraceLevel)
	levels := []logrus.Level{logrus.ErrorLevel, logrus.WarnLevel, logrus.InfoLevel, logrus.DebugLevel, logrus.TraceLevel}
	for _, level := range levels {
		log.Log(level, "x")
	}
	var got []journal.Priority
	for _, e := range j.entries {
		got = append(got, e.priority)
	}
	assert.Equal(t, []journal.Priority{journal.PriErr, journal.PriWarning, journal.PriInfo, journal.PriDebug, journal.PriDebug}, got)
}

func TestJournalAwayFallsBackAndSaysWhyOnce(t *testing.T) {
	t.Parallel()
	j := &journald{away: errors.New("no such socket")}
	log, fallback := newLogger(j)
	log.WithField("pod_name", "web-3").Warn("first")
	log.Warn("second")
	assert.Contains(t, fallback.String(), `msg=first journal_error="no such socket" pod_name=web-3`)
	assert.Contains(t, fallback.String(), `msg=second`+"\n")

	fallback.Reset()
	j.away = nil
	log.Warn("third")
	assert.Empty(t, fallback.String())
	require.Len(t, j.entries, 1)
	assert.Equal(t, "third", j.entries[0].message)

	j.away = errors.New("gone again")
	log.Warn("fourth")
	assert.Contains(t, fallback.String(), "gone again")
}

func TestNeitherTookIt(t *testing.T) {
	t.Parallel()
	hook := &Hook{send: (&journald{away: errors.New("no journal")}).take, fallback: broken{}, text: &logrus.TextFormatter{}}
	err := hook.Fire(logrus.NewEntry(logrus.New()))
	require.ErrorContains(t, err, "no journal")
	require.ErrorIs(t, err, os.ErrClosed)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestConcurrentEntriesStayWhole(t *testing.T) {
	t.Parallel()
	j := &journald{away: errors.New("away")}
	log, fallback := newLogger(j)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { log.WithField("wait", time.Second).Info("x") })
	}
	wg.Wait()
	assert.Equal(t, 50, bytes.Count(fallback.Bytes(), []byte("\n")))
}

func TestStderrOfATestIsNoJournal(t *testing.T) {
	t.Setenv("JOURNAL_STREAM", "")
	is, err := IsStderr()
	require.NoError(t, err)
	assert.False(t, is)

	t.Setenv("JOURNAL_STREAM", "nonsense")
	_, err = IsStderr()
	require.ErrorContains(t, err, "nonsense")
}
