package usage

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// after returns the usage of a pod of one thread that has used this much more since.
func (u usage) after(d time.Duration, more use) usage {
	return usage{
		at: u.at.Add(d), cpu: u.cpu + more.cpu,
		inLine: map[thread]float64{{}: u.inLine[thread{}] + more.inLine}, moved: map[thread]float64{{}: u.moved[thread{}] + more.moved},
	}
}

func TestAStallBeginsWithTheFirstQuietWindow(t *testing.T) {
	t.Parallel()
	const window = 5 * time.Second
	begin := time.Unix(1000, 0)
	sign := &Start{}
	s := Meter{stalls: StallOptions{Cores: 0.1, InLine: 0.5, Bytes: 1000}}
	now := usage{at: begin}
	step := func(cpu, inLine, moved float64) time.Time {
		now = now.after(time.Second, use{cpu: cpu, inLine: inLine, moved: moved})
		sign.add(now)
		return s.StalledSince(sign, 2*window)
	}
	steps := func(n int, cpu, inLine, moved float64) (since time.Time) {
		for range n {
			since = step(cpu, inLine, moved)
		}
		return since
	}
	sign.add(now)
	assert.Zero(t, s.StalledSince(sign, 2*window))
	assert.Zero(t, steps(4, 0, 0, 0), "the window is not full")
	assert.Equal(t, begin, step(0, 0, 0), "the stall counts from the begin of the window")
	assert.Equal(t, begin, steps(60, 0.03, 0.3, 500), "probes use this much on a busy node")
	assert.Zero(t, step(1, 0, 0), "the start computes")
	assert.Zero(t, steps(4, 0, 0, 0), "it computed within the window")
	assert.Equal(t, now.at.Add(-4*time.Second), step(0, 0, 0), "the stall counts from its last use")
	assert.Zero(t, steps(3, 0.02, 0.98, 0), "it would compute if it got a CPU")
	assert.NotZero(t, steps(5, 0, 0, 0))
	assert.Zero(t, step(0, 0, 5001), "the start reads")
	assert.NotZero(t, steps(5, 0, 0, 0))
	assert.Zero(t, steps(5, 0.1, 0, 0), "a slow start is not stalled")
}

// course returns the result of a start that was measured each second, from its use in each second.
func course(t *testing.T, seconds ...use) costs.Start {
	t.Helper()
	p := &Start{}
	now := usage{at: time.Unix(1000, 0), cpu: 7}
	p.add(now)
	for _, u := range seconds {
		now = now.after(time.Second, u)
		p.add(now)
	}
	took, known := p.Took()
	require.True(t, known)
	return took
}

func TestWhatAStartTook(t *testing.T) {
	t.Parallel()
	idles, burns := use{cpu: 0.01}, use{cpu: 1}
	shares, two, queues := use{cpu: 0.25, inLine: 0.75}, use{cpu: 2, moved: 4096}, use{cpu: 0.02, inLine: 0.98}
	s := time.Second
	for name, c := range map[string]struct {
		seconds []use
		want    costs.Start
	}{
		"burns at once":     {[]use{burns, burns, burns}, costs.Start{CPU: 3 * s, Wall: 3 * s, Peak: 1}},
		"idles, then burns": {[]use{idles, idles, idles, idles, burns, burns, burns}, costs.Start{CPU: 3040 * time.Millisecond, Wall: 7 * s, Idle: 3960 * time.Millisecond, Peak: 1}},
		"begins on a full node, idles, then burns": {
			[]use{queues, queues, queues, idles, idles, burns, burns, burns},
			costs.Start{CPU: 3080 * time.Millisecond, Wall: 8 * s, Waited: 2940 * time.Millisecond, Idle: 1980 * time.Millisecond, Peak: 1},
		},
		"wants one CPU, and shares it": {[]use{shares, shares, shares, shares}, costs.Start{CPU: s, Wall: 4 * s, Waited: 3 * s, Peak: 1}},
		"is ready within a second":     {[]use{{cpu: 0.5}}, costs.Start{CPU: s / 2, Wall: s, Idle: s / 2, Peak: 0.5}},
		"keeps two busy, and reads":    {[]use{idles, two, two}, costs.Start{CPU: 4010 * time.Millisecond, Wall: 3 * s, Idle: 990 * time.Millisecond, Peak: 2, Disk: 8192}},
		"idles, then keeps eight busy": {
			[]use{idles, idles, idles, idles, {cpu: 8}, {cpu: 8}},
			costs.Start{CPU: 16040 * time.Millisecond, Wall: 6 * s, Idle: 3960 * time.Millisecond, Peak: 8},
		},
		"only sleeps": {[]use{idles, idles, idles, idles}, costs.Start{CPU: 40 * time.Millisecond, Wall: 4 * s, Idle: 3960 * time.Millisecond, Peak: 0.01}},
	} {
		got := course(t, c.seconds...)
		assert.InDelta(t, c.want.Peak, got.Peak, 1e-9, name)
		assert.InDelta(t, c.want.CPU, got.CPU, float64(time.Microsecond), name)
		assert.InDelta(t, c.want.Idle, got.Idle, float64(time.Microsecond), name)
		assert.InDelta(t, c.want.Waited, got.Waited, float64(time.Microsecond), name)
		c.want.Peak, c.want.CPU, c.want.Idle, c.want.Waited = got.Peak, got.CPU, got.Idle, got.Waited
		assert.Equal(t, c.want, got, name)
	}
}

func TestWhatAStartUsesSoFar(t *testing.T) {
	t.Parallel()
	p := &Start{}
	_, known := p.Use()
	assert.False(t, known, "the start was not measured")
	now := usage{at: time.Unix(999, 0), cpu: 7}
	for _, c := range []struct {
		second use
		want   adaptive.Use
	}{
		{use{}, adaptive.Use{}},
		{use{0.5, 0.5, 4096}, adaptive.Use{CPU: time.Second / 2, Delayed: time.Second / 2, Disk: 4096, Cores: 0.5, Reads: 2048, Waited: 0.25, WaitedKnown: true}},
		{use{0.5, 0.5, 4096}, adaptive.Use{CPU: time.Second, Delayed: time.Second, Disk: 8192, Cores: 1, Reads: 4096, Waited: 0.5, WaitedKnown: true}},
		{use{}, adaptive.Use{CPU: time.Second, Delayed: time.Second, Disk: 8192, Cores: 0.5, Reads: 2048, Waited: 0.25, WaitedKnown: true}},
		{use{}, adaptive.Use{CPU: time.Second, Delayed: time.Second, Disk: 8192, WaitedKnown: true}},
	} {
		now = now.after(time.Second, c.second)
		p.add(now)
		use, known := p.Use()
		assert.Equal(t, now.at.After(time.Unix(1000, 0)), known)
		assert.Equal(t, c.want, use)
	}
	p.failed = true
	_, known = p.Use()
	assert.False(t, known)
}

func TestAPartlyMeasuredStartIsNotLearned(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	m := NewMeter(Roots{Proc: proc.dir, Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet())
	target := Target{PIDs: []int{7}}
	proc.process(7, 100, 1, "")
	s := &Start{}
	took := func(at int64) bool {
		_ = m.Measure(time.Unix(at, 0), s, target)
		_, known := s.Took()
		return known
	}
	assert.False(t, took(0), "one measurement is not enough")
	assert.True(t, took(1))
	target.PIDs[0] = 8
	assert.True(t, took(2), "it may have ended with this measurement")
	target.PIDs[0] = 7
	assert.False(t, took(3))
	assert.False(t, took(4), "its earlier use is not known")
	s = &Start{}
	assert.False(t, took(5))
	assert.True(t, took(6), "this is another start")
}

func TestAStartIsFollowedAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	for what, file := range map[string]string{"its disk": "io", "all of it": "stat"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			proc := fakeProc{t, t.TempDir()}
			m := NewMeter(Roots{Proc: proc.dir, Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet())
			now, s := time.Unix(1000, 0), &Start{}
			measure := func(moved int) (use adaptive.Use, known bool) {
				now = now.Add(time.Second)
				proc.process(7, moved, 0, "")
				require.NoError(t, m.Measure(now, s, Target{PIDs: []int{7}}))
				return s.Use()
			}
			_, _ = measure(1 << 20)
			use, known := measure(3 << 20)
			assert.True(t, known)
			assert.EqualValues(t, 2<<20, use.Disk)

			require.NoError(t, os.Remove(filepath.Join(proc.dir, "7", file)))
			require.Error(t, m.Measure(now.Add(time.Second/2), s, Target{PIDs: []int{7}}))
			_, known = s.Use()
			assert.False(t, known)
			assert.Zero(t, m.StalledSince(s, 2*time.Second))

			_, known = measure(10 << 20)
			assert.False(t, known, "nothing to compare with")
			use, known = measure(11 << 20)
			assert.True(t, known)
			assert.EqualValues(t, 3<<20, use.Disk, "what it moved meanwhile is not known")
			assert.InDelta(t, 1<<19, use.Reads, 1, "1 MiB in a window of 2 s")
			assert.Zero(t, m.StalledSince(s, 2*time.Second))
			_, _ = measure(11 << 20)
			assert.Equal(t, now.Add(-time.Second), m.StalledSince(s, 2*time.Second))
		})
	}
}

func TestManyStartsAreMeasuredLessOften(t *testing.T) {
	t.Parallel()
	m := NewMeter(Roots{Proc: "/nowhere", Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet())
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		pods  int
		after time.Duration
	}{{1, 250 * time.Millisecond}, {15, 250 * time.Millisecond}, {16, 500 * time.Millisecond}, {60, time.Second}, {200, time.Second}} {
		now = now.Add(time.Hour)
		due, next := m.Begin(now, c.pods)
		assert.True(t, due)
		assert.Equal(t, now.Add(c.after), next, "%d pods", c.pods)
		due, next = m.Begin(next.Add(-time.Millisecond), c.pods)
		assert.False(t, due)
		assert.Equal(t, now.Add(c.after), next, "%d pods", c.pods)
	}
}
