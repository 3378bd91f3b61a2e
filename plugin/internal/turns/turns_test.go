package turns

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leaveTimes returns when each of the waiting hooks leaves, as time after from.
func leaveTimes(from time.Time, of int, pace, left time.Duration) []time.Duration {
	times := make([]time.Duration, of)
	for i := range times {
		t := Turn{position: i + 1, of: of, pace: pace, from: from}
		times[i] = t.LeaveAt(from.Add(left)).Sub(from)
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
	_, moved := b.Of("a")
	// posts reports whether a post of these pods, one letter each, woke the waiters.
	posts := func(after, pace time.Duration, uids string) bool {
		b.post(now.Add(after), strings.Split(uids, ""), pace)
		select {
		case <-moved:
			_, moved = b.Of("a")
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
	third, _ := b.Of("c")
	assert.Equal(t, now, third.from, "the times count from the current ones")
	assert.False(t, posts(9*s, 11*s, "abc"))
	assert.True(t, posts(9*s, 13*s, "abc"), "the pace has changed")
	assert.False(t, posts(21*s, 13*s, "abc"))
	assert.True(t, posts(22*s, 13*s, "abc"), "the first hook should have left")
	assert.True(t, posts(23*s, 13*s, "bac"), "the order has changed")
	assert.True(t, posts(24*s, 13*s, "ba"), "one pod has left")
	assert.True(t, posts(24*s, 13*s, ""))
	assert.False(t, posts(24*s, 13*s, ""))
}
