package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

func TestBar(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		share, mark float64
		want        string
	}{
		{0, 0, "░░░░░░░░░░░░░░░░░░░░"},
		{0.5, 0, "██████████░░░░░░░░░░"},
		{1, 0, "████████████████████"},
		{7, 0, "████████████████████"},
		{-1, 0, "░░░░░░░░░░░░░░░░░░░░"},
		{math.NaN(), 0, "░░░░░░░░░░░░░░░░░░░░"},
		{0.25, 0.6, "█████░░░░░░░┃░░░░░░░"},
		{1, 1, "███████████████████┃"},
	} {
		assert.Equal(t, c.want, bar(c.share, c.mark), "%v marked at %v", c.share, c.mark)
	}
}

// What a terminal shows; elsewhere no bar is drawn, as the other pictures prove.
func TestStatusHasBarsOnATerminal(t *testing.T) {
	t.Parallel()
	s := herd()
	s.Ready = true
	s.Signals = []admin.Signal{
		{Name: "cpu", Value: new(97.0), Threshold: 80},
		{Name: "load", Value: new(2.0), Threshold: 4},
		{Name: "load", Value: new(2.0)},
		{Name: "pressure.io.some", Blind: "there is none"},
	}
	sc := screen{terminal: true}
	assertGolden(t, "status-bars", sc.text(statusLines(s, true)))
	assert.NotContains(t, sc.text(statusLines(s, false)), "░")
}
