package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// human writes a time span as people say it, with two units at most.
func human(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(0, d)
	switch {
	case d == 0:
		return "0s"
	case d < time.Second:
		return max(time.Millisecond, d.Round(time.Millisecond)).String()
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d.Round(time.Second) < time.Minute:
		return fmt.Sprintf("%ds", d.Round(time.Second)/time.Second)
	case d.Round(time.Second) < time.Hour:
		return units(d.Round(time.Second), time.Minute, "m", time.Second, "s")
	case d.Round(time.Minute) < day:
		return units(d.Round(time.Minute), time.Hour, "h", time.Minute, "m")
	default:
		return units(d.Round(time.Hour), day, "d", time.Hour, "h")
	}
}

func units(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d%s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		text += fmt.Sprintf("%d%s", rest, smallName)
	}
	return text
}

// clean replaces what could command a terminal: text from elsewhere is shown, not
// obeyed.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
