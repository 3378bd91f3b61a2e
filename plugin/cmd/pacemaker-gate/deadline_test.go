package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDeadlineWithAnyClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tt := range map[string]struct {
		given time.Time
		wait  time.Duration
	}{
		"as given":          {now.Add(time.Minute), time.Minute},
		"clock set back":    {now.AddDate(20, 0, 0), longestWait},
		"clock set forward": {now.Add(-time.Hour), -time.Hour},
	} {
		got := deadline(tt.given.Round(0), now).Sub(now) // wall clock only, as after parsing
		assert.InDelta(t, tt.wait.Seconds(), got.Seconds(), 0.01, name)
	}
}
