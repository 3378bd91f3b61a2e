package main

import (
	"slices"
	"strconv"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// signalsTable shows what was measured of the node against what is allowed.
func signalsTable(signals []admin.Signal, bars bool) []line {
	t := table{head: []string{"SIGNAL", "VALUE", "LIMIT", "OVER THE LAST"}}
	if bars {
		t.head = slices.Insert(t.head, 1, "")
	}
	for _, s := range signals {
		value, limit, over := "-", "-", "-"
		if s.Threshold > 0 {
			limit = signalText(s.Name, s.Threshold, -1)
		}
		if s.Value != nil {
			value, over = signalText(s.Name, *s.Value, 1), human(s.SpanSeconds.Duration())
		}
		if s.Blind != "" {
			value, over = "blind", s.Blind
			if s.Threshold > 0 {
				over = "the limit is open: " + over
			}
		}
		cells := []string{clean(s.Name), value, limit, clean(over)}
		if bars {
			cells = slices.Insert(cells, 1, signalBar(s))
		}
		t.add(cells...)
	}
	return t.lines()
}

// signalBar draws a signal, with a mark at its limit. A load has no end: its bar is
// full at half more than the limit.
func signalBar(s admin.Signal) string {
	if s.Value == nil {
		return ""
	}
	full := 100.0
	if s.Name == "load" {
		full = 1.5 * s.Threshold
	}
	if full <= 0 {
		return ""
	}
	return bar(*s.Value/full, s.Threshold/full)
}

// signalText writes a value with its unit, with so many digits; -1: as many as it
// has.
func signalText(name string, value float64, digits int) string {
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if name == "load" {
		return text
	}
	return text + "%"
}
