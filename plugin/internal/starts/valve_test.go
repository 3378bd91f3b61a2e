package starts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAShutdownThatIsKnownChangesNothing(t *testing.T) {
	t.Parallel()
	s := aStarts()
	isSet := func() bool { state, _ := s.Valve.Now(); return state.Shutdown }
	_, changed := s.Valve.Now()
	s.Valve.ShutsDown(true)
	<-changed
	require.True(t, isSet())
	_, changed = s.Valve.Now()
	s.Valve.ShutsDown(true)
	select {
	case <-changed:
		require.Fail(t, "nothing has changed")
	default:
	}
	s.Valve.ShutsDown(false)
	<-changed
	require.False(t, isSet())
}
