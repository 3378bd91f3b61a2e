package journal

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/logqueue"
)

// journald is a journal that stores its entries, or refuses all.
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

// newLogger returns a logger, and a function that writes the queued entries.
func newLogger(j *journald) (log *logrus.Logger, flush func()) {
	log = logrus.New()
	log.SetLevel(logrus.DebugLevel)
	queue := logqueue.New(64, nil)
	attach(log, queue, j.take)
	return log, func() { written(queue) }
}

// written writes the queued entries.
func written(queue *logqueue.Queue) {
	ended, end := context.WithCancel(context.Background())
	end()
	queue.Run(ended)
}

func TestEntryReachesTheJournalWithItsFields(t *testing.T) {
	t.Parallel()
	j := &journald{}
	log, flush := newLogger(j)
	log.WithFields(logrus.Fields{
		"pod_namespace": "default", "pod_name": "web-3", "pod_uid": "u-1",
		"container_id": "c0ffee", "reason": "WithinLimits", "wait_ms": int64(14200),
	}).Info("start admitted")
	assert.Empty(t, j.entries, "the caller of the logger must not write")
	flush()

	require.Len(t, j.entries, 1)
	assert.Equal(t, entry{"start admitted", journal.PriInfo, map[string]string{
		"POD_NAMESPACE": "default", "POD_NAME": "web-3", "POD_UID": "u-1",
		"CONTAINER_ID": "c0ffee", "REASON": "WithinLimits", "WAIT_MS": "14200",
		"SYSLOG_IDENTIFIER": "pod-pacemaker",
	}}, j.entries[0])
}

// journalctl prints the message alone, so the message must contain the error.
func TestTheMessageNamesTheError(t *testing.T) {
	t.Parallel()
	j := &journald{}
	log, flush := newLogger(j)
	log.WithError(errors.New("no such file")).Warn("the file cannot be read")
	flush()
	require.Len(t, j.entries, 1)
	assert.Equal(t, "the file cannot be read: no such file", j.entries[0].message)
	assert.Equal(t, "no such file", j.entries[0].fields["ERROR"])
}

func TestEveryLevelHasAPriority(t *testing.T) {
	t.Parallel()
	j := &journald{}
	log, flush := newLogger(j)
	log.SetLevel(logrus.TraceLevel)
	levels := []logrus.Level{logrus.ErrorLevel, logrus.WarnLevel, logrus.InfoLevel, logrus.DebugLevel, logrus.TraceLevel}
	for _, level := range levels {
		log.Log(level, "x")
	}
	flush()
	var got []journal.Priority
	for _, e := range j.entries {
		got = append(got, e.priority)
	}
	assert.Equal(t, []journal.Priority{journal.PriErr, journal.PriWarning, journal.PriInfo, journal.PriDebug, journal.PriDebug}, got)
}

func TestAnEntryThatIsNotWrittenIsCounted(t *testing.T) {
	t.Parallel()
	log, queue := logrus.New(), logqueue.New(1, nil)
	attach(log, queue, (&journald{away: errors.New("no journal")}).take)
	log.Info("x")
	written(queue)
	assert.EqualValues(t, 1, queue.Dropped())
}

func TestConcurrentEntriesStayWhole(t *testing.T) {
	t.Parallel()
	j := &journald{}
	log, flush := newLogger(j)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { log.WithField("wait", time.Second).Info("x") })
	}
	wg.Wait()
	flush()
	assert.Len(t, j.entries, 50)
}
