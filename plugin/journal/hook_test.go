package journal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/logqueue"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a logger, and the place of a journald that reads what it sends.
type world struct {
	t      *testing.T
	log    *logrus.Logger
	queue  *logqueue.Queue
	socket string
	conn   *net.UnixConn
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "j") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	w := &world{t: t, log: logrus.New(), queue: logqueue.New(64, nil), socket: filepath.Join(dir, "socket")}
	w.log.SetLevel(logrus.TraceLevel)
	attach(w.log, w.queue, w.socket)
	return w
}

// listens starts journald, which reads only in next.
func (w *world) listens() {
	w.t.Helper()
	var err error
	w.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: w.socket, Net: "unixgram"})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { assert.NoError(w.t, w.conn.Close()) })
}

// flush writes the queued entries.
func (w *world) flush() {
	ended, end := context.WithCancel(context.Background())
	end()
	w.queue.Run(ended)
}

// next reads the next entry.
func (w *world) next() map[string]string {
	w.t.Helper()
	datagram := make([]byte, 1<<16)
	require.NoError(w.t, w.conn.SetReadDeadline(time.Now().Add(time.Minute)))
	n, err := w.conn.Read(datagram)
	require.NoError(w.t, err)
	entry, err := parseEntry(datagram[:n])
	require.NoError(w.t, err)
	return entry
}

// parseEntry reads one entry in journald's native protocol: NAME=value lines. For a value with line breaks it is the
// name alone, the length in 8 bytes, and the value.
func parseEntry(data []byte) (map[string]string, error) {
	entry := map[string]string{}
	r := bufio.NewReader(bytes.NewReader(data))
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return entry, nil
		}
		name, text, short := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !short {
			var size uint64
			if err := binary.Read(r, binary.LittleEndian, &size); err != nil {
				return nil, fmt.Errorf("field %s: %w", name, err)
			}
			value := make([]byte, size+1)
			if _, err := io.ReadFull(r, value); err != nil || value[size] != '\n' {
				return nil, fmt.Errorf("field %s does not end where it says: %w", name, err)
			}
			text = string(value[:size])
		}
		entry[name] = text
	}
}

// journalctl prints the message alone, so the message must contain the error.
func TestAnEntryReachesJournaldWithItsFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.log.WithFields(logrus.Fields{
		"pod_uid": "u-1", "reason": reasons.Concurrency, "retry_in": 1500 * time.Millisecond, "wait_ms": int64(14200),
		"error": errors.New("line one\nline two"), "ahead": 3, "labels": map[string]string{"b": "2", "a": "1"}, "nothing": nil,
	}).Warn("start waits in the gate")
	w.listens() // the caller of the logger has not written
	w.flush()
	assert.Equal(t, map[string]string{
		"MESSAGE": "start waits in the gate: line one\nline two", "PRIORITY": "4", "SYSLOG_IDENTIFIER": "pod-pacemaker",
		"POD_UID": "u-1", "REASON": "Concurrency", "RETRY_IN": "1.5s", "WAIT_MS": "14200",
		"ERROR": "line one\nline two", "AHEAD": "3", "LABELS": "map[a:1 b:2]", "NOTHING": "<nil>",
	}, w.next())
	assert.Zero(t, w.queue.Dropped())
}

func TestEveryLevelHasAPriority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listens()
	for level, priority := range map[logrus.Level]string{
		logrus.ErrorLevel: "3", logrus.WarnLevel: "4", logrus.InfoLevel: "6", logrus.DebugLevel: "7", logrus.TraceLevel: "7",
	} {
		w.log.Log(level, "x")
		w.flush()
		assert.Equal(t, priority, w.next()["PRIORITY"], level)
	}
}

func TestAnEntryThatIsNotWrittenIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.log.Info("x")
	w.flush() // no journald listens
	assert.EqualValues(t, 1, w.queue.Dropped())
}

func TestConcurrentEntriesStayWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listens()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { w.log.WithField("wait", time.Second).Info("x") })
	}
	all.Wait()
	all.Go(w.flush)
	for range 50 {
		assert.Len(t, w.next(), 4)
	}
	all.Wait()
}

// While journald's queue is full, the log sleeps until there is room. This test must not run beside others, because it
// measures the process.
func TestAFullJournaldKeepsNoCPUBusy(t *testing.T) {
	w := newWorld(t)
	w.listens()
	other, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	filled := -1
	for ; err == nil; filled++ {
		err = unix.Sendto(other, []byte("MESSAGE=of another program\n"), 0, &unix.SockaddrUnix{Name: w.socket})
	}
	require.ErrorIs(t, err, unix.EAGAIN)
	require.NoError(t, unix.Close(other))
	w.log.Info("x")
	var flushed sync.WaitGroup
	flushed.Go(w.flush)
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool { return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("[IO wait")) }, time.Minute, time.Millisecond)
	// A thread that is busy is awake all the time. One that sleeps waits for a CPU now and then, for long on a busy machine.
	sleeps := false
	for range 3 {
		begin, before := time.Now(), awake(t)
		time.Sleep(time.Second)
		if sleeps = awake(t)-before < time.Since(begin)/2; sleeps {
			break
		}
	}
	assert.True(t, sleeps, "the log keeps a CPU busy")
	for range filled {
		assert.Equal(t, "of another program", w.next()["MESSAGE"])
	}
	assert.Equal(t, "x", w.next()["MESSAGE"])
	flushed.Wait()
}

// awake returns for how long threads of this process have run, or waited for a CPU.
func awake(t *testing.T) (sum time.Duration) {
	t.Helper()
	threads, err := filepath.Glob("/proc/self/task/*/schedstat")
	require.NoError(t, err)
	for _, thread := range threads {
		var ran, waited time.Duration
		content, err := os.ReadFile(thread)
		if err != nil {
			continue // the thread has ended
		}
		_, err = fmt.Sscan(string(content), &ran, &waited)
		require.NoError(t, err)
		sum += ran + waited
	}
	return sum
}
