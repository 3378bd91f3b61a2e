package main

import (
	"strconv"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// signalsTable shows the signals of the node and their limits.
func signalsTable(signals []admin.Signal) []string {
	t := table{{"SIGNAL", "VALUE", "LIMIT", "OVER THE LAST"}}
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
		t.add(s.Name, value, limit, over)
	}
	return t.lines()
}

// signalText formats a value with its unit. digits is the number of decimals; -1 means as many as needed.
func signalText(name string, value float64, digits int) string {
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if name == "load" {
		return text
	}
	return text + "%"
}
