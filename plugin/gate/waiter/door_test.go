package waiter

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// The hooks find out that their daemon hangs when most of their times to leave are over. Still, no hook leaves sooner
// than the pace after another.
func TestHooksOfADaemonThatHangsLeaveOneByOne(t *testing.T) {
	t.Parallel()
	const hooks, pace, silence = 30, 50 * time.Millisecond, time.Second
	var mu sync.Mutex
	told := 0
	path := gatetest.Listen(t, func(c net.Conn) {
		mu.Lock()
		told++
		turn := ""
		if told <= hooks { // from then on the daemon hangs
			turn = string(wire.AppendAnswer(nil, wire.Answer{
				Kind: wire.Forecast, LeaveAt: time.Now().Add(time.Duration(told) * pace), Place: told, Pace: pace,
			}))
		}
		mu.Unlock()
		_, _ = io.WriteString(c, turn)
		_, _ = io.Copy(io.Discard, c)
	})
	var left []time.Time
	var running, unheard sync.WaitGroup
	unheard.Add(hooks)
	for range hooks {
		running.Go(func() {
			w := impatient(path, time.Hour, time.Hour)
			w.connect(time.Now())
			for !w.contacted { // however long the daemon takes
				_, answered, err := w.poll(time.Now())
				if err != nil {
					t.Error(err)
					break
				}
				if answered {
					w.listen()
				}
			}
			unheard.Done()
			unheard.Wait()
			w.daemon.close()
			w.silence = silence
			assert.True(t, w.Wait().Starts)
			mu.Lock()
			left = append(left, time.Now())
			mu.Unlock()
			w.door.release() // as at the end of the hook
			w.daemon.close()
		})
	}
	running.Wait()
	require.Len(t, left, hooks)
	slices.SortFunc(left, time.Time.Compare)
	for i := range hooks - 1 {
		assert.GreaterOrEqual(t, left[i+1].Sub(left[i]), pace, "between the hooks %d and %d", i, i+1)
	}
}

func TestAMissingDoorKeepsNoHook(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := newDoor(kernel{}, "/nowhere/gate.sock")
	due := now.Add(time.Second)
	assert.False(t, d.passes(now, due, time.Minute))
	assert.Equal(t, due, d.next(due, time.Minute), "until then the hook sleeps")
	assert.True(t, d.passes(due, due, time.Minute))
	d.release() // a daemon came, told an earlier turn, and is gone
	sooner := due.Add(-time.Millisecond)
	assert.True(t, d.passes(sooner, sooner, time.Minute))
	assert.Equal(t, ".", newDoor(kernel{}, "gate.sock").folder)
}

func TestADaemonThatDecidesAgainEndsTheLeaving(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	first, second := newDoor(kernel{}, dir+"/gate.sock"), newDoor(kernel{}, dir+"/gate.sock")
	assert.False(t, first.passes(now, now, time.Minute), "the first hook has just taken the door")
	assert.Equal(t, first.since.Add(time.Minute), first.next(now, time.Minute))
	assert.False(t, second.passes(now, now, time.Minute))
	assert.Equal(t, now.Add(doorRetryMost), second.next(now, time.Minute))
	first.release()
	later := now.Add(doorRetryMost)
	assert.False(t, second.passes(later, now, time.Minute))
	due := second.next(now, time.Minute)
	assert.Equal(t, second.since.Add(time.Minute), due)
	assert.False(t, second.passes(due.Add(-1), now, time.Minute))
	assert.True(t, second.passes(due, now, time.Minute))
	second.release()
}

// On a busy node, a hook may be interrupted between its look at the clock and its try of the door. The hook before it
// leaves meanwhile.
func TestThePaceCountsFromTheMomentTheDoorIsTaken(t *testing.T) {
	t.Parallel()
	now := time.Now().Add(-time.Second)
	d := newDoor(kernel{}, t.TempDir()+"/gate.sock")
	left := time.Now()
	assert.False(t, d.passes(now, now, time.Minute))
	assert.WithinRange(t, d.next(now, time.Minute), left.Add(time.Minute), time.Now().Add(time.Minute))
	d.release()
}
