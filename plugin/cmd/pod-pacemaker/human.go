package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
)

// human formats a duration as kubectl does, and one below ten seconds with fractions.
func human(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return max(time.Millisecond, d.Round(time.Millisecond)).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return duration.HumanDuration(d.Round(time.Second))
	}
}

// line returns text from outside as one line of at most 4 KiB.
func line(text string) string { return plain.Line(text, 4<<10) }

// plural returns a count with its noun, in the plural if need be.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// pairsText lists the keys with their values, in order.
func pairsText[V ~string](pairs map[string]V, between string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		all = append(all, key+between+string(pairs[key]))
	}
	return strings.Join(all, ", ")
}
