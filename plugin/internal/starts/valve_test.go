package starts

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Without a source that can report the end of a shutdown, the shutdown expires.
func TestAShutdownExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := aStarts()
		isSet := func() bool { state, _ := s.Valve.Now(); return state.Shutdown }
		s.Valve.SetShutdown(true)
		time.Sleep(time.Minute)
		s.Valve.SetShutdown(false)
		_, changed := s.Valve.Now()
		s.Valve.SetShutdown(true)
		<-changed
		_, changed = s.Valve.Now()
		time.Sleep(longestShutdown - 1)
		synctest.Wait()
		require.True(t, isSet())
		s.Valve.SetShutdown(true) // this is known already
		select {
		case <-changed:
			require.Fail(t, "nothing has changed")
		default:
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.False(t, isSet())
		<-changed
	})
}
