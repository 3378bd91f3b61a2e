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
