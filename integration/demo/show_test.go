package demo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

func TestSamplePressure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		// A task waits for a quarter of the first second, then for all of the time.
		read := func() (time.Duration, error) {
			past := time.Since(begin)
			return min(past, time.Second)/4 + max(0, past-time.Second), nil
		}
		windows, err := samplePressure(ctx, begin, read)
		require.NoError(t, err)
		assert.Equal(t, []timeline.Pressure{
			{From: 0, To: time.Second, Some: 0.25},
			{From: time.Second, To: 2 * time.Second, Some: 1},
			{From: 2 * time.Second, To: 2500 * time.Millisecond, Some: 1},
		}, windows)
	})
}

func TestUnknownPressureIsNotZero(t *testing.T) {
	t.Parallel()
	gone := errors.New("no such file")
	windows, err := samplePressure(t.Context(), time.Now(), func() (time.Duration, error) { return 0, gone })
	require.ErrorIs(t, err, gone)
	assert.Empty(t, windows)
}

func TestMarks(t *testing.T) {
	t.Parallel()
	cri := "2026-01-02T03:04:05.000000001Z stdout F started 1700000000000000001\n" +
		"2026-01-02T03:04:05.000000001Z stderr F something else\n" +
		"2026-01-02T03:04:13.000000001Z stdout F ready 1700000008000000002\n"
	for text, want := range map[string][2]int64{
		"":                            {},
		"started\nready":              {},
		"started soon":                {},
		"started 17\n":                {17},
		"started 17\nready 18\n":      {17, 18},
		"not started yet\nstarted 17": {17},
		cri:                           {1700000000000000001, 1700000008000000002},
	} {
		started, ready := marks(text)
		for i, got := range []time.Time{started, ready} {
			if want[i] == 0 {
				assert.True(t, got.IsZero(), text)
				continue
			}
			assert.Equal(t, want[i], got.UnixNano(), text)
		}
	}
}

func TestHerdScalesWithTheCPUs(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 8, 64} {
		h := NewHerd(make([]int, n))
		assert.Equal(t, ideal, h.Ideal(), "%d CPUs", n)
		assert.GreaterOrEqual(t, h.Pods, 12)
		assert.GreaterOrEqual(t, h.Limit, n, "starts at a time: all CPUs have work in the paced run")
		earliest, _ := probeKills()
		assert.Greater(t, time.Duration(h.Pods/n)*h.Burn, earliest, "without pacing, no pod is ready before its kill")
		paced := time.Duration(h.Limit) * h.Burn / time.Duration(n)
		assert.Less(t, paced, earliest*2/3, "with pacing, each pod is ready long before its kill")
	}
	h := NewHerd([]int{4, 7})
	assert.Equal(t, "4,7", h.cpuset())
	assert.Equal(t, "herd-01", h.podName(0))
	assert.Equal(t, []string{"--cpu-seconds", "8", "--port", "80"}, h.arguments(80))
}

func TestShowEndsWhenAllAreReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		n := &fakeNode{burn: 8 * time.Second}
		run, err := onePod(n).show(t.Context(), plainProgress{out: &out}, time.Minute)
		require.NoError(t, err)
		assert.InDelta(t, 8, run.Length.Seconds(), 0.2)
		assert.Equal(t, 8*time.Second, run.Summary().AllReady)
		assert.Contains(t, out.String(), "5 s of at most 60 s:  0 waiting,  1 starting,  0 ready,  0 killed\n")
		assert.Contains(t, out.String(), "8 s of at most 60 s:  0 waiting,  0 starting,  1 ready,  0 killed\n")
	})
}

func TestShowEndsAfterTheLongestTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		run, err := onePod(&fakeNode{burn: time.Hour}).show(t.Context(), plainProgress{out: &out}, 40*time.Second)
		require.NoError(t, err)
		assert.Equal(t, 40*time.Second, run.Length)
		assert.Zero(t, run.Summary().AllReady)
		assert.Equal(t, 2, run.Summary().Kills)
	})
}

func TestPodLines(t *testing.T) {
	t.Parallel()
	b := barProgress{burn: 8 * time.Second}
	full, half, none := strings.Repeat("█", 24), strings.Repeat("█", 12)+strings.Repeat("·", 12), strings.Repeat("·", 24)
	for want, v := range map[string]podView{
		none + "  waiting":                                  {doing: asking},
		none + "  waiting, asked 3 times":                   {doing: asking, refused: 2},
		half + "  starting, 4.0 of 8.0 CPU-s":               {doing: starting, cpu: 4 * time.Second},
		half + "  starting, 4.0 of 8.0 CPU-s, killed twice": {doing: starting, cpu: 4 * time.Second, kills: 2},
		none + "  waiting to be started again, killed once": {doing: backOff, kills: 1},
		full + "  ready":                                    {doing: ready, refused: 2},
	} {
		v.name = "herd-01"
		assert.Equal(t, "  herd-01 "+want, b.podLine(v, 7, 200))
	}
	assert.Equal(t, "  herd-01 "+none+"  waiting, as…", b.podLine(podView{name: "herd-01", doing: asking, refused: 2}, 7, 48))
}

func TestOtherWork(t *testing.T) {
	t.Parallel()
	before := cpuTimes{busy: 5, all: 10}
	now := cpuTimes{busy: 8, all: 14}
	assert.InDelta(t, 0.75, now.otherWorkSince(before, 0), 1e-9)
	assert.InDelta(t, 0.5, now.otherWorkSince(before, time.Second), 1e-9)
	assert.Zero(t, now.otherWorkSince(before, time.Hour), "no negative share, although the clocks of both figures differ a little")
	assert.Zero(t, before.otherWorkSince(before, 0))

	calm, busy := timeline.Run{Name: "unpaced", OtherWork: 0.05}, timeline.Run{Name: "paced", OtherWork: 0.6}
	assert.Empty(t, warning([]timeline.Run{calm, calm}))
	assert.Contains(t, warning([]timeline.Run{calm, busy}), "60 % of this machine's CPUs during the paced run")
}

func TestBurnedCountsEveryProcess(t *testing.T) {
	t.Parallel()
	r := newRecorder("test", 0, NewHerd([]int{0}))
	r.began(0, time.Now())
	r.used(0, 2*time.Second)
	r.ended(0, time.Now(), true)
	r.began(0, time.Now())
	r.used(0, 3*time.Second)
	r.began(1, time.Now())
	r.used(1, 4*time.Second)
	assert.Equal(t, 9*time.Second, r.burned())
}
