package nri

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stops reports that a pod is being stopped, and that no list of pods came yet.
type stops struct{}

func (stops) Listed() bool { return false }

func (stops) Stopping(now time.Time) (string, time.Time, bool) {
	return "ns/unknown", now.Add(time.Minute), true
}

func TestTheWaitForTheListOfPodsIsShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := aConnection()
		c.options.Stops, c.listBy = stops{}, time.Now().Add(listWithin)
		require.ErrorIs(t, c.checkStops(time.Now()), errNotListed)
		require.ErrorIs(t, c.Paces(), errNotListed)
		time.Sleep(listWithin - time.Nanosecond)
		require.ErrorIs(t, c.checkStops(time.Now()), errNotListed)
		assert.False(t, c.RegistrationWaits(), "without a list, no stopping container is known")
		time.Sleep(time.Nanosecond)
		require.NoError(t, c.checkStops(time.Now()), "without an API server, nothing is known of stops")
	})
	standalone, _ := aConnection()
	require.NoError(t, standalone.checkStops(time.Now()))
}

// stopsUntil reports until a given time that a pod is being stopped.
type stopsUntil struct{ end time.Time }

func (stopsUntil) Listed() bool { return true }

func (s stopsUntil) Stopping(now time.Time) (string, time.Time, bool) {
	return "ns/slow", s.end, now.Before(s.end)
}

func TestWhileAContainerIsStoppedNoConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, configured := range map[string]bool{"it answers too late": true, "it is not configured": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const stop, timeout = time.Minute, 2 * time.Second
				c, _ := aConnection()
				c.options.Stops = stopsUntil{end: time.Now().Add(stop)}
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
				err := c.watch(ctx, &watchedConn{closed: make(chan struct{})}, late, make(chan error))
				require.ErrorIs(t, err, map[bool]error{true: errTooLate, false: errSilent}[configured])
				require.GreaterOrEqual(t, time.Since(begin), stop)
				require.LessOrEqual(t, time.Since(begin), stop+registrationLimit)
				time.Sleep(2 * stop) // all answers have come
			})
		})
	}
}
