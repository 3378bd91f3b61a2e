package waiting

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
)

func TestAHookIsToldOnlyChangesOfItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := aNode(t, func(o *Options) { o.Gate.Timeout = time.Hour })
		n.occupy("holder")
		var hooks []*asker
		for i, name := range []string{"first", "second"} {
			hook := n.pod(name).runs().waits("app")
			require.Len(t, hook.told(), 1)
			assert.Equal(t, i+1, hook.told()[0].place, "counted from one")
			assert.WithinDuration(t, time.Now().Add(starts.RestartGrace+time.Duration(i+1)*15*time.Second), hook.told()[0].leaveAt, time.Second)
			hooks = append(hooks, hook)
		}
		for range 100 {
			n.o.Starts.Wake()
			n.passes(40 * time.Millisecond)
		}
		for _, hook := range hooks {
			assert.Len(t, hook.told(), 1, "nothing changed in all these rounds")
		}
		n.passes(15 * time.Second) // the turn of the first should have come
		last := func(i int) time.Time {
			told := hooks[i].told()
			return told[len(told)-1].leaveAt
		}
		assert.True(t, last(0).After(time.Now()), "the turn is still to come")
		assert.True(t, last(1).After(last(0)))
		for _, hook := range hooks {
			hook.hangsUp()
		}
	})
}
