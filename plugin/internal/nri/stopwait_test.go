package nri

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// stops knows that a pod is being stopped, and not which pods there are.
type stops struct{}

func (stops) Listed() bool { return false }

func (stops) Stopping(now time.Time) (string, time.Time, bool) {
	return "ns/unknown", now.Add(time.Minute), true
}

func TestTheListOfPodsIsWaitedForAndNotForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := stopWait{source: stops{}}
		w.begin(time.Now())
		require.ErrorIs(t, w.reason(time.Now()), errNotListed)
		time.Sleep(listWithin - time.Nanosecond)
		require.ErrorIs(t, w.reason(time.Now()), errNotListed)
		time.Sleep(time.Nanosecond)
		require.NoError(t, w.reason(time.Now()), "without an API server, nobody can tell")
	})
	standalone := stopWait{}
	require.NoError(t, standalone.reason(time.Now()))
}

// stopsUntil knows that a pod is being stopped until a time.
type stopsUntil struct{ end time.Time }

func (stopsUntil) Listed() bool { return true }

func (s stopsUntil) Stopping(now time.Time) (string, time.Time, bool) {
	return "ns/slow", s.end, now.Before(s.end)
}

func TestWhileAContainerIsStoppedNoConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, configured := range map[string]bool{"one that answers too late": true, "one that is not configured": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const stop, timeout = time.Minute, 2 * time.Second
				c, _ := aConnection()
				c.stops.source = stopsUntil{end: time.Now().Add(stop)}
				number := c.begin()
				if configured {
					require.NoError(t, c.configured(number, "containerd", "2.4.2", timeout))
				}
				late := newLateAnswers(func() time.Duration { return timeout })
				begin, ctx := time.Now(), t.Context()
				go func() {
					for configured && time.Since(begin) < 2*stop {
						time.Sleep(5 * time.Second)
						late.took(time.Now(), timeout)
					}
				}()
				err := c.watch(ctx, number, &watchedConn{closed: make(chan struct{})}, late, make(chan error))
				require.ErrorIs(t, err, map[bool]error{true: errTooLate, false: errSilent}[configured])
				require.GreaterOrEqual(t, time.Since(begin), stop)
				require.LessOrEqual(t, time.Since(begin), stop+registrationLimit)
				time.Sleep(2 * stop) // the answers are over
			})
		})
	}
}
