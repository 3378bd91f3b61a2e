package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

func TestDeadlineWithAnyClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tt := range map[string]struct {
		args wire.Args
		wait time.Duration
	}{
		"none given":        {wire.Args{}, defaultWait},
		"as given":          {wire.Args{Deadline: now.Add(time.Minute)}, time.Minute},
		"clock set back":    {wire.Args{Deadline: now.AddDate(20, 0, 0)}, longestWait},
		"clock set forward": {wire.Args{Deadline: now.Add(-time.Hour)}, -time.Hour},
	} {
		tt.args.Deadline = tt.args.Deadline.Round(0) // wall clock only, as after parsing
		got := deadline(tt.args, now).Sub(now)
		assert.InDelta(t, tt.wait.Seconds(), got.Seconds(), 0.01, name)
	}
}
