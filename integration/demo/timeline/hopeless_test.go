package timeline

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// recorded is an unpaced run on a quiet machine with 2 CPUs: 12 pods of 8 CPU-seconds, begins and kills of each.
var recorded = [][]float64{
	{1.6, 16.1, 16.6, 34.1, 44.4, 61.2},
	{1.8, 18.9, 20.4, 36.9, 47.4, 64.1},
	{2.0, 19.2, 21.1, 40.0, 50.5, 67.1},
	{2.0, 19.2, 20.7, 37.2, 47.9, 64.5},
	{2.2, 19.3, 21.1, 39.9, 50.5, 67.0},
	{1.4, 18.9, 20.6, 36.8, 47.0, 63.8},
	{2.2, 19.3, 20.7, 37.2, 48.1, 64.3},
	{1.9, 19.1, 20.8, 36.9, 47.7, 64.2},
	{1.1, 18.7, 19.4, 36.7, 46.9, 63.7},
	{2.1, 19.1, 20.9, 37.3, 48.1, 67.1},
	{2.0, 19.4, 20.7, 37.3, 48.0, 67.0},
	{2.0, 16.1, 16.5, 34.1, 44.4, 61.1},
}

// killed returns the pods of a series of begins and kills.
func killed(series [][]float64) []Pod {
	var pods []Pod
	for _, times := range series {
		p := Pod{}
		for pair := range slices.Chunk(times, 2) {
			p.Starts = append(p.Starts, Start{Began: s(pair[0]), Ended: s(pair[1]), Killed: true})
		}
		pods = append(pods, p)
	}
	return pods
}

// hopelessAt returns the first tenth of a second at which the pods are hopeless, 0 if they never are.
func hopelessAt(pods []Pod) time.Duration {
	for at := time.Duration(0); at < s(150); at += 100 * time.Millisecond {
		var known []Pod
		for _, p := range pods {
			known = append(known, p.Until(at))
		}
		if Hopeless(known) {
			return at
		}
	}
	return 0
}

func TestTheRecordedUnpacedRunIsHopelessWithItsLastKill(t *testing.T) {
	t.Parallel()
	assert.InDelta(t, 67.1, hopelessAt(killed(recorded)).Seconds(), 0.01)
}

func TestAHerdThatGetsOnIsNotHopeless(t *testing.T) {
	t.Parallel()
	change := func(change func(pods []Pod)) []Pod {
		pods := killed(recorded)
		change(pods)
		return pods
	}
	ready := func(began, at float64) Start { return Start{Began: s(began), Ready: s(at)} }
	for name, c := range map[string]struct {
		pods []Pod
		at   float64
	}{
		"no pods": {},
		"all are ready": {pods: []Pod{
			{Starts: []Start{ready(1, 9)}}, {Starts: []Start{{Began: s(1), Ended: s(18), Killed: true}, ready(18, 30)}},
		}},
		"one waits for its first process": {pods: change(func(pods []Pod) { pods[3].Starts = nil })},
		"one was killed twice only":       {pods: change(func(pods []Pod) { pods[3].Starts = pods[3].Starts[:2] })},
		"one ended by itself":             {pods: change(func(pods []Pod) { pods[3].Starts[1].Killed = false })},
		"one became ready meanwhile":      {pods: change(func(pods []Pod) { pods[3].Starts = []Start{ready(21, 29)} })},
		"one became ready before all kills": {
			pods: change(func(pods []Pod) { pods[3].Starts = []Start{ready(1, 9)} }), at: 67.1,
		},
		"one was ready and was killed": {
			pods: change(func(pods []Pod) { pods[3].Starts[1].Ready = s(29) }), at: 67.1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.InDelta(t, c.at, hopelessAt(c.pods).Seconds(), 0.01)
		})
	}
}
