package starts

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// haveProcesses returns a snapshot in which pods wait with a process, in this order.
func haveProcesses(pace time.Duration, uids ...string) throttle.Snapshot {
	s := throttle.Snapshot{Interval: pace}
	for _, uid := range uids {
		s.Waiting = append(s.Waiting, throttle.TicketView{UID: uid, Present: true})
	}
	return s
}

// leaveTimes returns when each of the waiting hooks leaves, as time after from.
func leaveTimes(from time.Time, of int, pace, left time.Duration) []time.Duration {
	b, uids, times := &board{moved: make(chan struct{})}, make([]string, of), make([]time.Duration, of)
	for i := range uids {
		uids[i] = strconv.Itoa(i)
	}
	b.update(from, haveProcesses(pace, uids...))
	for i, uid := range uids {
		forecast := b.forecast(uid, from.Add(left))
		times[i] = forecast.LeaveAt.Sub(from)
	}
	return times
}

func TestHooksWithoutADaemonLeaveInTheirOrder(t *testing.T) {
	t.Parallel()
	from := time.Unix(1000, 0)
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		of := 1 + random.IntN(200)
		pace := 1 + time.Duration(random.Int64N(int64(time.Minute)))
		left := time.Duration(of+1) + time.Duration(random.Int64N(int64(time.Hour)))
		grace := min(RestartGrace, left/4)
		apart := min(pace, (left-min(noticeGrace, left/2))/time.Duration(of+1))
		before := grace
		for i, at := range leaveTimes(from, of, pace, left) {
			require.GreaterOrEqual(t, at-before, apart, "place %d of %d, pace %s, %s left", i+1, of, pace, left)
			require.Greater(t, at, before)
			require.LessOrEqual(t, at, left)
			before = at
		}
	}
}

func TestLeaveTimesAreAtThePaceOrShareTheTimeLeft(t *testing.T) {
	t.Parallel()
	from := time.Unix(1000, 0)
	s := time.Second
	assert.Equal(t, []time.Duration{20 * s, 30 * s, 40 * s}, leaveTimes(from, 3, 10*s, 60*s))
	ms := time.Millisecond
	assert.Equal(t, []time.Duration{26800 * ms, 43600 * ms, 60400 * ms, 77200 * ms}, leaveTimes(from, 4, time.Hour, 100*s), "the last hook leaves before its deadline, even if the daemon hangs")
	assert.Equal(t, []time.Duration{1500 * ms, 2 * s, 2500 * ms}, leaveTimes(from, 3, s, 4*s), "near the deadline, hooks wait less for another daemon")
	assert.Equal(t, []time.Duration{0, 0}, leaveTimes(from, 2, s, -s), "the deadline is over")
}

func TestTheBoardWakesNoWaiterForTheSameForecast(t *testing.T) {
	t.Parallel()
	b := &board{moved: make(chan struct{})}
	now := time.Unix(1000, 0)
	moved := b.moved
	// wakes reports whether an update with these pods, one letter each, woke the waiters.
	wakes := func(after, pace time.Duration, uids string) bool {
		b.update(now.Add(after), haveProcesses(pace, strings.Split(uids, "")...))
		select {
		case <-moved:
			moved = b.moved
			return true
		default:
			return false
		}
	}
	const s = time.Second
	assert.False(t, wakes(0, 10*s, ""), "no pod waits")
	assert.True(t, wakes(0, 10*s, "ab"))
	assert.False(t, wakes(s, 10*s, "ab"))
	assert.True(t, wakes(2*s, 10*s, "abc"), "one more pod waits")
	assert.False(t, wakes(9*s, 11*s, "abc"))
	assert.True(t, wakes(9*s, 13*s, "abc"), "the pace has changed")
	assert.False(t, wakes(21*s, 13*s, "abc"))
	assert.True(t, wakes(22*s, 13*s, "abc"), "the first hook should have left")
	assert.True(t, wakes(23*s, 13*s, "bac"), "the order has changed")
	assert.True(t, wakes(24*s, 13*s, "ba"), "one pod has left")
	assert.True(t, wakes(24*s, 13*s, ""))
	assert.False(t, wakes(24*s, 13*s, ""))
}

func TestTheBoardIsUpdatedAgainWhenItsFirstTurnIsOver(t *testing.T) {
	t.Parallel()
	b, now := &board{moved: make(chan struct{})}, time.Unix(1000, 0)
	assert.Zero(t, b.update(now, haveProcesses(time.Minute)))
	assert.Equal(t, now.Add(time.Minute), b.update(now, haveProcesses(time.Minute, "a")))
	assert.Equal(t, now.Add(time.Minute), b.update(now.Add(time.Second), haveProcesses(time.Minute, "a")), "nothing has changed")
	later := now.Add(2 * time.Second)
	assert.Equal(t, later.Add(leaveTolerance), b.update(later, haveProcesses(time.Millisecond, "a")), "not more than once a second")
}

// While pods join one after another, the turns are forecast again and again, and hooks are sent only what changes by
// more than the tolerance. If the daemon goes away meanwhile, the hooks still leave in their order.
func TestHooksKeepTheirOrderWhilePodsJoin(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		b, now := &board{moved: make(chan struct{})}, time.Unix(1000, 0)
		pace := time.Duration(random.Int64N(int64(20 * time.Second)))
		deadline := now.Add(time.Minute + time.Duration(random.Int64N(int64(time.Hour))))
		var uids []string
		var sent []Forecast
		for i := range 30 {
			now = now.Add(time.Duration(random.Int64N(int64(700 * time.Millisecond))))
			uids, sent = append(uids, strconv.Itoa(i)), append(sent, Forecast{})
			b.update(now, haveProcesses(pace, uids...))
			for j, uid := range uids {
				if forecast := b.forecast(uid, deadline); forecast.Supersedes(sent[j]) {
					sent[j] = forecast
				}
				require.False(t, sent[j].LeaveAt.After(deadline))
				require.False(t, j > 0 && sent[j].LeaveAt.Before(sent[j-1].LeaveAt.Add(-leaveTolerance)), "pace %s, %d of %d", pace, j, i)
			}
		}
	}
}

// If each pod that comes moved the turns of those before it, hooks would have turns of different forecasts.
func TestAPodThatComesLaterMovesNoTurn(t *testing.T) {
	t.Parallel()
	b, now := &board{moved: make(chan struct{})}, time.Unix(1000, 0)
	deadline := now.Add(time.Hour)
	b.update(now, haveProcesses(10*time.Second, "a", "b"))
	before := b.forecast("b", deadline)
	b.update(now.Add(5*time.Second), haveProcesses(10*time.Second, "a", "b", "c"))
	after := b.forecast("b", deadline)
	assert.Equal(t, before, after)
	last := b.forecast("c", deadline)
	assert.Equal(t, before.LeaveAt.Add(10*time.Second), last.LeaveAt)
	b.update(now.Add(6*time.Second), haveProcesses(10*time.Second, "b", "c"))
	first := b.forecast("b", deadline)
	assert.Equal(t, 1, first.Place)
	assert.Equal(t, now.Add(6*time.Second+RestartGrace+10*time.Second), first.LeaveAt, "forecast anew")
}

// Only policies hold pods, so there is no pace.
func TestWithoutAPaceHooksLeaveOneByOneToo(t *testing.T) {
	t.Parallel()
	for i, at := range leaveTimes(time.Unix(1000, 0), 12, 0, time.Hour) {
		assert.Equal(t, RestartGrace+time.Duration(i+1)*leastPace, at)
	}
}

// While all starts are held, no hook leaves before the end of that. Their turns are forecast anew when it ends earlier.
func TestHooksWithoutADaemonLeaveAfterTheHold(t *testing.T) {
	t.Parallel()
	from := time.Unix(1000, 0)
	b, held := &board{moved: make(chan struct{})}, haveProcesses(10*time.Second, "a", "b")
	held.Held = throttle.Held{Reason: reasons.StartAfter, Until: from.Add(time.Minute)}
	b.update(from, held)
	leaves := func(deadline time.Duration) time.Duration {
		f := b.forecast("b", from.Add(deadline))
		return f.LeaveAt.Sub(from)
	}
	assert.Equal(t, time.Minute+30*time.Second, leaves(5*time.Minute))
	assert.Equal(t, 30*time.Second, leaves(30*time.Second), "it can wait no longer")
	b.update(from.Add(time.Second), held)
	assert.Equal(t, time.Minute+30*time.Second, leaves(5*time.Minute))
	b.update(from.Add(20*time.Second), haveProcesses(10*time.Second, "a", "b"))
	assert.Equal(t, 50*time.Second, leaves(5*time.Minute))
}
