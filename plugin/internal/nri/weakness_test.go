package nri

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADaemonThatIsGivenUpSoonStaysAwayForLonger(t *testing.T) {
	t.Parallel()
	soon := life{registered: true, synchronized: true, lasted: weakSoon - 1}
	never := life{registered: true, lasted: time.Hour}
	w := &weakness{}
	assert.Zero(t, w.after(life{}), "no runtime listens")
	assert.Zero(t, w.after(life{registered: true, synchronized: true, lasted: weakSoon}))
	assert.Equal(t, 5*time.Second, w.after(soon))
	assert.Equal(t, 50*time.Second, w.after(never), "the connection was never synchronized")
	assert.Equal(t, 5*time.Minute, w.after(soon))
	assert.Equal(t, 5*time.Minute, w.after(soon))
	steady := life{registered: true, synchronized: true, lasted: weakMost - 1}
	assert.Equal(t, 5*time.Minute, w.after(steady), "the time away does not count as a steady connection")
	steady.lasted++
	assert.Zero(t, w.after(steady))
	assert.Equal(t, 5*time.Second, w.after(soon), "the pauses begin again")
}

func TestALateAnswerCountsAfterAnyLengthOfTheConnection(t *testing.T) {
	t.Parallel()
	long := life{registered: true, synchronized: true, lasted: time.Hour, late: 1}
	w := &weakness{}
	assert.Equal(t, 5*time.Second, w.after(long))
	assert.Equal(t, 5*time.Second, w.after(long), "the late answer of an hour ago is forgotten")
	long.late = 2
	assert.Equal(t, 50*time.Second, w.after(long), "the runtime kept the connection after the first late answer")
	assert.Equal(t, 5*time.Minute, w.after(life{registered: true, synchronized: true, lasted: time.Second}))
}

func TestAnotherRuntimeIsNotKeptWaiting(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nri.sock")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	c := &Connection{options: Options{Socket: path}}
	c.weakness.pause = weakMost
	before := socketID(path)
	require.NotEmpty(t, before)
	assert.Equal(t, before, socketID(path))
	// The next runtime creates its own socket. The socket file of a killed runtime may still exist.
	require.NoError(t, os.WriteFile(path+".next", nil, 0o600))
	require.NoError(t, os.Rename(path+".next", path))
	c.rest(t.Context(), time.Hour, before)
	assert.Zero(t, c.weakness.pause)

	require.NoError(t, os.Remove(path))
	assert.Empty(t, socketID(path))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.rest(ctx, time.Hour, "")
}

func TestLateAnswersCountWhereTheyComeSoonAfterAnother(t *testing.T) {
	t.Parallel()
	now, timeout := time.Unix(1000, 0), time.Duration(0)
	l := newLateAnswers(func() time.Duration { return timeout })
	again := func() bool {
		select {
		case <-l.again:
			return true
		default:
			return false
		}
	}
	l.took(now, time.Hour)
	l.took(now, time.Hour)
	assert.False(t, again(), "the runtime's timeout is not known yet")
	timeout = 2 * time.Second
	l.took(now, timeout-1)
	l.took(now, timeout)
	assert.False(t, again(), "the first late answer")
	l.took(now.Add(weakSoon), timeout)
	assert.False(t, again(), "this is long after the first late answer")
	assert.Equal(t, 1, l.late(now.Add(weakSoon)))
	l.took(now.Add(2*weakSoon-1), timeout)
	assert.True(t, again())
	assert.Equal(t, 2, l.late(now.Add(3*weakSoon-2)))
	assert.Zero(t, l.late(now.Add(3*weakSoon-1)), "the late answers are long past")
}

func TestAnswersThatAreLateAtTheSameTimeCountOnce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	l := newLateAnswers(func() time.Duration { return 2 * time.Second })
	l.took(now, 3*time.Second)
	l.took(now.Add(time.Second), 3*time.Second)
	assert.Equal(t, 1, l.late(now.Add(time.Second)))
	l.took(now.Add(4*time.Second), 3*time.Second)
	assert.Equal(t, 2, l.late(now.Add(4*time.Second)))
}

// A runtime that keeps the connection gives up one call after the other, and none of them ever ends.
func TestCallsUnderWayCountAsLate(t *testing.T) {
	t.Parallel()
	begin, timeout := time.Unix(1000, 0), 2*time.Second
	l := newLateAnswers(func() time.Duration { return timeout })
	hangs := l.begins(begin)
	l.ends(l.begins(begin), begin.Add(time.Second))
	l.look(begin.Add(timeout - 1))
	assert.Zero(t, l.late(begin.Add(timeout)))
	l.look(begin.Add(3 * time.Second))
	l.look(begin.Add(4 * time.Second))
	assert.Equal(t, 1, l.late(begin.Add(4*time.Second)), "it counts once")
	l.ends(hangs, begin.Add(10*time.Second))
	assert.Equal(t, 1, l.late(begin.Add(10*time.Second)), "it has counted")

	l = newLateAnswers(func() time.Duration { return timeout })
	for i := range 3 { // the runtime waits for its timeout at each
		l.begins(begin.Add(time.Duration(i) * timeout))
	}
	l.look(begin.Add(3 * timeout)) // and the daemon looks late
	assert.Equal(t, 3, l.late(begin.Add(3*timeout)))
	assert.Len(t, l.again, 1)
}

func TestAHandlerThatHangsEndsTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := aConnection()
		require.NoError(t, c.configured(c.begin(), "containerd", "2.4.2", Timeouts{Request: time.Hour}))
		late := newLateAnswers(c.lateAfter)
		began := time.Now()
		go func() {
			late.begins(time.Now())
			time.Sleep(2 * lateMost)
			late.begins(time.Now())
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, c.watch(ctx, &watchedConn{closed: make(chan struct{})}, late), errTooLate)
		assert.InDelta(t, 3*lateMost, time.Since(began), float64(2*stillEvery), "whatever the runtime allows")
	})
}

// A snapshot pauses a whole virtual machine, so the runtime may wait for no answer meanwhile.
func TestOnlyCallsUnderWayMakeStandstillsEndTheConnection(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string]bool{"no call is under way": false, "a call is under way at each": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _ := aConnection()
				late := newLateAnswers(func() time.Duration { return 2 * time.Second })
				c.options.Stops = &apiServer{stops: func(now time.Time) (end time.Time, is bool) { // it is asked while it is not registered
					if calls {
						late.begins(now)
					}
					time.Sleep(5 * time.Second)
					return end, late.late(now) < 2
				}}
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
				defer cancel()
				err := c.watch(ctx, &watchedConn{closed: make(chan struct{})}, late)
				assert.GreaterOrEqual(t, late.late(time.Now()), 2)
				if calls {
					require.ErrorIs(t, err, errTooLate)
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}
