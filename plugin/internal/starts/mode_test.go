package starts

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
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

// A hook that comes while the node shuts down, or is short of memory, is sent away. It takes no slot that is free.
func TestAHookThatComesWhenAllWaitsEndTakesNoSlot(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *Starts, is bool){"shutdown": (*Starts).SetShutdown, "pressure": (*Starts).SetPressure} {
		onNode(t, func(t *testing.T, n *node) {
			end(n.Starts, true)
			comes := func() Process {
				return n.EnterGate(time.Now(), Identity{UID: "p", Namespace: "default", Name: "p"}, "c", time.Now(), time.Time{})
			}
			p := comes()
			require.Equal(t, throttle.Waiting, p.Outlook.State, name)
			p.Leave()
			end(n.Starts, false)
			p = comes()
			require.Equal(t, throttle.Starting, p.Outlook.State, name)
			p.Leave()
		})
	}
}
