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
		isSet := func() bool { state, _ := s.endsNow(); return state.Shutdown }
		s.SetShutdown(true)
		time.Sleep(time.Minute)
		s.SetShutdown(false)
		_, changed := s.endsNow()
		s.SetShutdown(true)
		<-changed
		_, changed = s.endsNow()
		time.Sleep(longestShutdown - 1)
		synctest.Wait()
		require.True(t, isSet())
		s.SetShutdown(true) // this is known already
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
