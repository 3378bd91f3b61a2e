package waiting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The refusals of a herd that would take less than 2 % of the node's CPU at the container take 2 % in every minute, and
// what was saved up before: after a quiet time that of one more minute.
func TestRefusalsStayWithinTheirShareInEveryMinute(t *testing.T) {
	t.Parallel()
	const (
		cores  = 4
		share  = cores * time.Minute / 50 // 2 % of a minute
		herd   = 600                      // seconds in which one pod is refused in each
		quiet  = 600
		minute = 60
	)
	r := aChooser(Options{RefuseAt: RefuseAuto, Cores: cores}).Refusals
	var spent []time.Duration // in each second
	for second := range 2*herd + quiet {
		now, cost := time.Unix(int64(second), 0), time.Duration(0)
		if second < herd || second >= herd+quiet {
			cost = containerRefusalCPU
			if r.atSandbox(now, true) {
				cost = sandboxRefusalCPU
			}
			r.cpu.charge(now, cost)
		}
		spent = append(spent, cost)
	}
	for first := range len(spent) - minute + 1 {
		var cost time.Duration
		for _, c := range spent[first : first+minute] {
			cost += c
		}
		require.LessOrEqual(t, cost, 2*share, "in the minute after %d s", first)
		switch herds := first % (herd + quiet); {
		case herds >= minute && herds <= herd-minute:
			require.InDelta(t, share.Seconds(), cost.Seconds(), sandboxRefusalCPU.Seconds(), "in the minute after %d s", first)
		case herds == 0:
			require.Greater(t, cost, share, "the first minute uses what was saved up")
		}
	}
}
