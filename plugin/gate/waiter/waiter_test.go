package waiter

import (
	"bufio"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

func TestTimeToLeaveIsNeverAfterTheDeadline(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := New(Start{Deadline: now.Add(time.Minute), Forecast: wire.Answer{LeaveAt: now.Add(time.Hour)}}, now)
	assert.Equal(t, w.deadline, w.forecast.LeaveAt)
	w.follow(wire.Answer{LeaveAt: now.Add(time.Second)}, now)
	assert.Equal(t, time.Second, w.forecast.LeaveAt.Sub(now))
	w.follow(wire.Answer{}, now)
	assert.True(t, w.forecast.LeaveAt.Before(now), "without a time, the hook leaves at once")
}

func TestNextWakeUp(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := now.Add
	w := Waiter{door: newDoor(kernel{}, "/gate.sock"), deadline: at(time.Minute), retryAt: at(time.Second), silentAt: at(40 * time.Second)}
	w.forecast.LeaveAt = at(30 * time.Second)
	w.daemon.fd = 5
	assert.Equal(t, at(40*time.Second), w.next(now), "with a daemon, its silence and the deadline count")
	w.silentAt = at(time.Hour)
	assert.Equal(t, at(time.Minute), w.next(now))
	w.silent = true
	assert.Equal(t, at(30*time.Second), w.next(now), "a daemon that hangs counts as gone")
	w.silent = false
	w.daemon.fd = -1
	assert.Equal(t, at(time.Second), w.next(now))
	w.forecast.LeaveAt = at(time.Millisecond)
	assert.Equal(t, at(time.Millisecond), w.next(now))
}

// The daemon may never come back. Its last forecast then counts for a while only.
func TestAWaitWithoutADaemonIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := now.Add
	w := Waiter{door: newDoor(kernel{}, t.TempDir()+"/gate.sock"), deadline: at(time.Hour), retryAt: at(2 * time.Hour), silentAt: at(2 * time.Hour)}
	w.forecast = wire.Answer{LeaveAt: at(10 * time.Minute), Place: 60, Pace: 5 * time.Second}
	w.daemon.fd, w.aloneSince = -1, now
	assert.Equal(t, at(10*time.Minute), w.due(), "no bound is set")
	w.start.AloneMost = time.Minute
	assert.Equal(t, at(time.Minute), w.due())
	assert.Equal(t, 5*time.Second, w.pace(at(59*time.Second)), "until then, the daemon's pace")
	assert.Equal(t, afterAlone, w.pace(at(time.Minute)))
	assert.Equal(t, at(55*time.Second), w.next(at(50*time.Second)), "it tries the door a pace before")
	w.door.fd, w.door.since = 0, at(58*time.Second) // it holds the door
	assert.Equal(t, at(time.Minute), w.next(at(59*time.Second)), "the pace changes")
	assert.Equal(t, at(time.Minute), w.next(at(time.Minute)))
	w.forecast.LeaveAt, w.forecast.Place = at(10*time.Second), 0
	assert.Equal(t, at(10*time.Second), w.due(), "its time comes before")
	w.aloneSince = time.Time{}
	assert.Equal(t, at(10*time.Second), w.due(), "a daemon decides")
}

func TestRetriesSpread(t *testing.T) {
	t.Parallel()
	began := time.Now()
	w := Waiter{daemon: daemon{host: kernel{}, fd: -1}}
	seen := map[time.Duration]bool{}
	for i := range 100 {
		now := began.Add(time.Duration(i) * 1234567)
		w.disconnect(errClosed, now)
		pause := w.retryAt.Sub(now)
		assert.GreaterOrEqual(t, pause, retryMin)
		assert.Less(t, pause, retryMin+retrySpread)
		seen[pause/time.Millisecond] = true
	}
	assert.Greater(t, len(seen), 20)
}

func TestAnotherParentMeansThatTheRuntimeIsGone(t *testing.T) {
	t.Parallel()
	assert.False(t, watchParent(os.Getppid()).gone())
	// There is no pidfd, as on an old kernel: the first check notices the end.
	w := New(Start{Socket: "/nowhere", Deadline: time.Now().Add(time.Hour)}, time.Now())
	w.host = kernel{parent: parent{pid: os.Getppid() + 1, fd: -1}}
	assert.Equal(t, Outcome{Orphaned: true, Reason: RuntimeGone}, w.Wait())
	assert.EqualValues(t, -1, watchParent(0).fd, "the parent is outside this pid namespace")
}

// impatient is a hook of this process. After a short silence, it treats the daemon as gone.
func impatient(path string, silence, leave time.Duration) *Waiter {
	now := time.Now()
	w := New(Start{
		Socket: path, Hello: wire.Hello{PodUID: "u", ContainerID: "c"}, Deadline: now.Add(time.Hour),
		Forecast: wire.Answer{LeaveAt: now.Add(leave)}, Parent: os.Getppid(),
	}, now)
	w.silence = silence
	return w
}

// A daemon that hangs accepts connections, and says nothing. The hooks leave at their time, as without a daemon.
func TestADaemonThatHangsCountsAsGone(t *testing.T) {
	t.Parallel()
	path := gatetest.Listen(t, func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c) // until the hook closes the connection
	})
	begin := time.Now()
	w := impatient(path, 50*time.Millisecond, time.Second)
	assert.True(t, w.Wait().Starts)
	assert.GreaterOrEqual(t, time.Since(begin), time.Second)
	assert.Equal(t, " at "+path+": "+errSilent.Error(), w.because())
	w.daemon.close()
}

// Until then the hook asks again and again. The daemon decides once it works again.
func TestADaemonThatHangsIsAskedAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	path := gatetest.Listen(t, func(c net.Conn) {
		if asked.Add(1) > 3 {
			_, _ = io.WriteString(c, "go Admitted\n") // or the hook has closed the connection, and asks again
		}
		_, _ = io.Copy(io.Discard, c)
	})
	w := impatient(path, 50*time.Millisecond, time.Hour)
	assert.True(t, w.Wait().Starts)
	assert.Greater(t, asked.Load(), int32(3))
	assert.Empty(t, w.because(), "the daemon's decision starts it")
	w.daemon.close()
}

func TestEveryLineEndsTheSilence(t *testing.T) {
	t.Parallel()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(pair[1])
	w := New(Start{Forecast: wire.Answer{LeaveAt: time.Now().Add(time.Minute)}, Deadline: time.Now().Add(time.Hour)}, time.Now())
	w.daemon.fd = pair[0]
	defer w.daemon.close()
	for _, line := range []string{"alive\n", "turn 5000 1\n"} {
		w.silent, w.silentAt = true, time.Now()
		leaveAt := w.forecast.LeaveAt
		_, err = unix.Write(pair[1], []byte(line))
		require.NoError(t, err)
		_, decided := w.listen()
		assert.False(t, decided)
		assert.False(t, w.Alone(), line)
		assert.WithinRange(t, w.silentAt, time.Now().Add(wire.SilenceMost/2), time.Now().Add(wire.SilenceMost))
		assert.Equal(t, line == "alive\n", leaveAt.Equal(w.forecast.LeaveAt), "%s: the time to leave", line)
	}
	w.silent = true
	_, decided := w.listen()
	assert.False(t, decided)
	assert.True(t, w.Alone(), "the daemon has sent nothing")
}

func TestReceivePutsLinesTogether(t *testing.T) {
	t.Parallel()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(pair[1])
	d := daemon{host: kernel{}, fd: pair[0]}
	defer d.close()
	var heard []wire.Answer
	receive := func(said string) error {
		_, err := unix.Write(pair[1], []byte(said))
		require.NoError(t, err)
		return d.receive(func(a wire.Answer) bool {
			heard = append(heard, a)
			return a.Kind == wire.Forecast
		})
	}
	require.NoError(t, d.receive(nil), "no byte has come yet")
	require.NoError(t, receive("turn 5"))
	assert.Empty(t, heard)
	require.NoError(t, receive("0 1\nturn 60 2\ngo"))
	require.NoError(t, receive(" Admitted\nabort Deleted\n"))
	assert.Equal(t, []wire.Answer{
		{Kind: wire.Forecast, LeaveAt: time.UnixMicro(50), Place: 1},
		{Kind: wire.Forecast, LeaveAt: time.UnixMicro(60), Place: 2},
		{Kind: wire.Go, Reason: "Admitted"}, // the decision: lines after it do not count
	}, heard)
}

// forward returns a time as it reads after the wall clock was set forward by d.
func forward(now time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&now)) += uint64(d/time.Second) << 30 // the seconds of the wall clock
	return now
}

func TestTheDaemonReadsTimesOnItsWallClock(t *testing.T) {
	t.Parallel()
	heard := make(chan string, 1)
	path := gatetest.Listen(t, func(c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		heard <- line
	})
	now := time.Now()
	require.Equal(t, time.Second, forward(now, time.Hour).Sub(now.Add(-time.Second)), "only the wall clock differs")
	w := New(Start{
		Socket: path, Hello: wire.Hello{PodUID: "u", ContainerID: "c", Since: now.Add(-time.Minute).Round(0)}, Deadline: now.Add(time.Minute),
	}, now)
	w.connect(forward(now, time.Hour))
	defer w.daemon.close()
	hello, err := wire.ParseHello(strings.TrimSuffix(<-heard, "\n"))
	require.NoError(t, err)
	assert.Equal(t, now.Add(time.Hour-time.Minute).UnixMicro(), hello.Since.UnixMicro())
	assert.Equal(t, now.Add(time.Hour+time.Minute).UnixMicro(), hello.Deadline.UnixMicro())
}
