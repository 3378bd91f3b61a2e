package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestHuman(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second:                  "0s",
		0:                             "0s",
		time.Microsecond:              "1ms",
		350 * time.Millisecond:        "350ms",
		time.Second:                   "1s",
		4230 * time.Millisecond:       "4.2s",
		9990 * time.Millisecond:       "10s",
		12400 * time.Millisecond:      "12s",
		59800 * time.Millisecond:      "60s",
		3 * time.Minute:               "3m",
		192 * time.Second:             "3m12s",
		time.Hour - time.Millisecond:  "60m",
		125*time.Minute + time.Second: "125m",
		24 * time.Hour:                "24h",
		3*24*time.Hour + 4*time.Hour:  "3d4h",
		100 * 24 * time.Hour:          "100d",
	} {
		assert.Equal(t, want, human(d), d.String())
	}
}
