package starts

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// learner is a Starts whose one pod, "web", runs as process 7 of a made-up /proc.
type learner struct {
	*Starts
	t    *testing.T
	root string
	now  time.Time
	web  podwatch.Pod
}

func newLearner(t *testing.T) *learner {
	t.Helper()
	l := &learner{t: t, root: t.TempDir(), now: time.Now(), web: podwatch.Pod{
		UID: "web", Namespace: "default", Name: "web", Patience: 27 * time.Second, Like: podwatch.Like{Owner: "Deployment/web", Images: "i"},
	}}
	l.Starts = aStarts(func(o *Options) {
		o.Roots = usage.Roots{Proc: l.root, Cgroup: "/nowhere"}
		o.Pods = &asked{pods: map[string]podwatch.Pod{"web": l.web}}
	})
	l.uses(0)
	l.runs(l.now, "web", 7)
	return l
}

// uses says how much CPU time the pod used since its process began.
func (l *learner) uses(cpu time.Duration) {
	l.t.Helper()
	proc(l.t, l.root, strconv.Itoa(int(cpu/(10*time.Millisecond)))+" 0")
}

// burns has the pod burn CPU for some seconds.
func (l *learner) burns(from, seconds int) {
	l.t.Helper()
	for i := range seconds {
		l.now = l.now.Add(time.Second)
		l.uses(time.Duration(from+i+1) * time.Second)
		l.loop.round(l.now)
	}
}

func (l *learner) expected() learning.Expectation { return l.Memory.Expect(l.web, false) }

func TestWhatAStartTookIsLearnedWhenItIsReady(t *testing.T) {
	t.Parallel()
	l := newLearner(t)
	ticket := l.starts(l.now, "web")
	l.loop.round(l.now)
	l.burns(0, 3)
	assert.Equal(t, learning.None, l.expected().Basis, "it is not over")
	ticket.End(l.now, reasons.Ready)
	l.loop.round(l.now)
	e := l.expected()
	assert.Equal(t, learning.Owner, e.Basis)
	assert.Equal(t, 1, e.Count)
	assert.InDelta(t, 3, e.CPU.Mean, 1e-6)
	assert.InDelta(t, 3, e.Alone.Mean, 1e-6)
	assert.InDelta(t, 1, e.Peak.Mean, 1e-6)

	// It crashes and starts again, which is another thing to learn.
	again := l.Limiter.Join(l.now, throttle.Request{UID: "web", Name: "default/web", Repeats: 1})
	again.TryStart(l.now)
	l.loop.round(l.now)
	l.burns(3, 1)
	again.End(l.now, reasons.Ready)
	l.loop.round(l.now)
	assert.Equal(t, l.expected(), e)
	assert.InDelta(t, 1, l.Memory.Expect(l.web, true).CPU.Mean, 1e-6, "what was used before it began does not count")
	assert.Empty(t, l.loop.courses)
}

// What was not seen from its beginning, or came to nothing, says nothing.
func TestWhatIsNotLearned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		adopted bool
		lasted  int
		end     reasons.Reason
		want    learning.Basis
		count   int
	}{
		"ready":                      {false, 2, reasons.Ready, learning.Owner, 1},
		"settled":                    {false, 2, reasons.Settled, learning.Owner, 1},
		"under way before":           {true, 2, reasons.Ready, learning.None, 0},
		"deleted":                    {false, 2, reasons.Deleted, learning.None, 0},
		"stuck":                      {false, 2, reasons.Stuck, learning.None, 0},
		"crashed early":              {false, 2, reasons.CrashLoop, learning.None, 0},
		"killed, for all that known": {false, 14, reasons.Exited, learning.Owner, 0},
	} {
		l := newLearner(t)
		var ticket *throttle.Ticket
		if c.adopted {
			ticket = l.Limiter.Adopt(l.now, throttle.Request{UID: "web", Name: "default/web"}, l.now)
		} else {
			ticket = l.starts(l.now, "web")
		}
		l.loop.round(l.now)
		l.burns(0, c.lasted)
		ticket.End(l.now, c.end)
		l.loop.round(l.now)
		e := l.expected()
		assert.Equal(t, c.want, e.Basis, name)
		assert.Equal(t, c.count, e.Count, name)
		assert.Empty(t, l.loop.courses, name)
	}
}

// In the mode Shadow a start begins and ends beside its ticket, which waits.
func TestStartsAreLearnedInTheModeShadow(t *testing.T) {
	t.Parallel()
	l := newLearner(t)
	l.Limiter.Configure(l.now, throttle.Settings{MaxConcurrent: 1})
	l.starts(l.now, "holder")
	ticket := l.starts(l.now, "web")
	l.GoOn(l.now, ticket, reasons.Concurrency)
	l.loop.round(l.now)
	l.burns(0, 3)
	_, ok := l.Ledger.noteOver(ticket, l.now, reasons.Ready)
	require.True(t, ok)
	l.loop.round(l.now)
	assert.Equal(t, throttle.Waiting, state(ticket))
	e := l.expected()
	assert.Equal(t, 1, e.Count)
	assert.InDelta(t, 3, e.CPU.Mean, 1e-6)

	l.now = l.now.Add(time.Minute)
	l.Limiter.Lookup("holder").End(l.now, reasons.Ready)
	l.loop.round(l.now)
	ticket.End(l.now.Add(time.Minute), reasons.Ready)
	l.loop.round(l.now.Add(time.Minute))
	assert.Equal(t, 1, l.expected().Count, "once")
}

func TestWhoMayHaveBeenKilled(t *testing.T) {
	t.Parallel()
	assert.True(t, killed(27*time.Second, 27*time.Second))
	assert.False(t, killed(5*time.Second, 27*time.Second))
	assert.False(t, killed(time.Hour, 0), "no probe would")
}

func TestAStartThatWasKilledIsABound(t *testing.T) {
	t.Parallel()
	l := newLearner(t)
	l.Memory.Learn(l.now, l.web, false, costs.Start{CPU: time.Second, Wall: time.Second, Peak: 1})
	ticket := l.starts(l.now, "web")
	l.loop.round(l.now)
	l.burns(0, 20)
	ticket.End(l.now, reasons.Exited)
	l.loop.round(l.now)
	e := l.expected()
	assert.Equal(t, 1, e.Count)
	assert.Greater(t, e.CPU.Mean, 1.5)
}
