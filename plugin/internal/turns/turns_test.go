package turns

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// waits returns a snapshot in which pods wait with a process, in this order.
func waits(pace time.Duration, uids ...string) throttle.Snapshot {
	s := throttle.Snapshot{Pace: pace}
	for _, uid := range uids {
		s.Waiting = append(s.Waiting, throttle.TicketView{UID: uid, Present: true})
	}
	return s
}

// leaveTimes returns when each of the waiting hooks leaves, as time after from.
func leaveTimes(from time.Time, of int, pace, left time.Duration) []time.Duration {
	b, uids, times := NewBoard(), make([]string, of), make([]time.Duration, of)
	for i := range uids {
		uids[i] = strconv.Itoa(i)
	}
	b.Post(from, waits(pace, uids...))
	for i, uid := range uids {
		turn, _ := b.Of(uid, from.Add(left))
		times[i] = turn.LeaveAt.Sub(from)
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
			require.GreaterOrEqual(t, at-before, apart, "position %d of %d, pace %s, %s left", i+1, of, pace, left)
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

func TestTheBoardWakesNoWaiterForTheSameTurns(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	now := time.Unix(1000, 0)
	_, moved := b.Of("a", now)
	// posts reports whether a post of these pods, one letter each, woke the waiters.
	posts := func(after, pace time.Duration, uids string) bool {
		b.Post(now.Add(after), waits(pace, strings.Split(uids, "")...))
		select {
		case <-moved:
			_, moved = b.Of("a", now)
			return true
		default:
			return false
		}
	}
	const s = time.Second
	assert.False(t, posts(0, 10*s, ""), "no pod waits")
	assert.True(t, posts(0, 10*s, "ab"))
	assert.False(t, posts(s, 10*s, "ab"))
	assert.True(t, posts(2*s, 10*s, "abc"), "one more pod waits")
	assert.False(t, posts(9*s, 11*s, "abc"))
	assert.True(t, posts(9*s, 13*s, "abc"), "the pace has changed")
	assert.False(t, posts(21*s, 13*s, "abc"))
	assert.True(t, posts(22*s, 13*s, "abc"), "the first hook should have left")
	assert.True(t, posts(23*s, 13*s, "bac"), "the order has changed")
	assert.True(t, posts(24*s, 13*s, "ba"), "one pod has left")
	assert.True(t, posts(24*s, 13*s, ""))
	assert.False(t, posts(24*s, 13*s, ""))
}

func TestTheBoardIsPostedAgainWhenItsFirstTurnIsOver(t *testing.T) {
	t.Parallel()
	b, now := NewBoard(), time.Unix(1000, 0)
	assert.Zero(t, b.Post(now, waits(time.Minute)))
	assert.Equal(t, now.Add(time.Minute), b.Post(now, waits(time.Minute, "a")))
	assert.Equal(t, now.Add(time.Minute), b.Post(now.Add(time.Second), waits(time.Minute, "a")), "nothing has changed")
	later := now.Add(2 * time.Second)
	assert.Equal(t, later.Add(leaveTolerance), b.Post(later, waits(time.Millisecond, "a")), "not more than once a second")
}

// While pods join one after another, the turns count from each of them, and hooks are sent only what changes by more than
// the tolerance. If the daemon goes away meanwhile, the hooks still leave in their order.
func TestHooksKeepTheirOrderWhilePodsJoin(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		b, now := NewBoard(), time.Unix(1000, 0)
		pace := time.Duration(random.Int64N(int64(20 * time.Second)))
		deadline := now.Add(time.Minute + time.Duration(random.Int64N(int64(time.Hour))))
		var uids []string
		var sent []Turn
		for i := range 30 {
			now = now.Add(time.Duration(random.Int64N(int64(700 * time.Millisecond))))
			uids, sent = append(uids, strconv.Itoa(i)), append(sent, Turn{})
			b.Post(now, waits(pace, uids...))
			for j, uid := range uids {
				if turn, _ := b.Of(uid, deadline); turn.News(sent[j]) {
					sent[j] = turn
				}
				require.False(t, sent[j].LeaveAt.After(deadline))
				require.False(t, j > 0 && sent[j].LeaveAt.Before(sent[j-1].LeaveAt.Add(-leaveTolerance)), "pace %s, %d of %d", pace, j, i)
			}
		}
	}
}

// If each pod that comes moved the turns of those before it, hooks would hold turns of different counts.
func TestAPodThatComesLaterMovesNoTurn(t *testing.T) {
	t.Parallel()
	b, now := NewBoard(), time.Unix(1000, 0)
	deadline := now.Add(time.Hour)
	b.Post(now, waits(10*time.Second, "a", "b"))
	before, _ := b.Of("b", deadline)
	b.Post(now.Add(5*time.Second), waits(10*time.Second, "a", "b", "c"))
	after, _ := b.Of("b", deadline)
	assert.Equal(t, before, after)
	last, _ := b.Of("c", deadline)
	assert.Equal(t, before.LeaveAt.Add(10*time.Second), last.LeaveAt)
	b.Post(now.Add(6*time.Second), waits(10*time.Second, "b", "c"))
	first, _ := b.Of("b", deadline)
	assert.Equal(t, 1, first.Position)
	assert.Equal(t, now.Add(6*time.Second+RestartGrace+10*time.Second), first.LeaveAt, "counted anew")
}
