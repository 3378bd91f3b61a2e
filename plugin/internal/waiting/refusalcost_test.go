package waiting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refuses charges a refusal at the sandbox or at the container to r, as refuse does, and returns its cost.
func refuses(r *Refusals, now time.Time, atSandbox bool) time.Duration {
	cost := containerRefusalCPU
	if atSandbox {
		cost = sandboxRefusalCPU
	}
	r.cpu.charge(now, cost)
	return cost
}

func TestRefusalsAtTheSandboxAreBounded(t *testing.T) {
	t.Parallel()
	r := aChooser(Options{RefuseAt: RefuseAuto, Cores: 2}).Refusals
	now := time.Unix(0, 0)
	n := 0
	for r.atSandbox(now, true) {
		refuses(r, now, true)
		n++
	}
	// 2 % of two cores for a minute is 2.4 CPU-seconds: 12 refusals of 0.2.
	assert.Equal(t, 12, n)
	assert.False(t, r.atSandbox(now.Add(4900*time.Millisecond), true))
	assert.True(t, r.atSandbox(now.Add(5*time.Second), true), "0.2 CPU-seconds are 2 % of two cores for 5 s")
}

func TestRefusalsAtTheContainerCostTheNodeToo(t *testing.T) {
	t.Parallel()
	r := aChooser(Options{RefuseAt: RefuseAuto, Cores: 1}).Refusals
	now := time.Unix(0, 0)
	for range 20 { // 50 ms each: of 1.2 CPU-seconds, 0.2 are left
		assert.True(t, r.atSandbox(now, true))
		refuses(r, now, false)
	}
	assert.True(t, r.atSandbox(now, true))
	for range 100 {
		refuses(r, now, false)
		require.False(t, r.atSandbox(now, true))
	}
	assert.Equal(t, -1200*time.Millisecond, r.cpu.left(now), "as much is owed at most as can be saved up")
}

func TestRefusalPointCanBeFixed(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	sandbox := aChooser(Options{RefuseAt: RefuseSandbox, Cores: 1}).Refusals
	container := aChooser(Options{RefuseAt: RefuseContainer, Cores: 1}).Refusals
	for range 1000 {
		refuses(sandbox, now, true)
	}
	assert.True(t, sandbox.atSandbox(now, true), "the fixed point stays at any cost")
	assert.False(t, container.atSandbox(now, true))
}

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
			cost = refuses(r, now, r.atSandbox(now, true))
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
