package main

import (
	"math"
	"strings"
)

// barWidth is how many characters a bar has.
const barWidth = 20

// bar draws a share, from 0 to 1, with a mark at another; a mark of 0 is none.
func bar(share, mark float64) string {
	cells := []rune(strings.Repeat("░", barWidth))
	for i := range int(math.Round(clamp(share) * barWidth)) {
		cells[i] = '█'
	}
	if mark > 0 {
		cells[min(barWidth-1, int(clamp(mark)*barWidth))] = '┃'
	}
	return string(cells)
}

func clamp(share float64) float64 {
	if math.IsNaN(share) {
		return 0
	}
	return max(0, min(1, share))
}
