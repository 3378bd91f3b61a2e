package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/duration"
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

// clean replaces every unprintable character by a space, so that text from elsewhere cannot control
// the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

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
