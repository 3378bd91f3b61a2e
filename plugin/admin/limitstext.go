package admin

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// NoLimits is what Limits.String says where none is set.
const NoLimits = "none: no pod is held back"

// String says the limits in one sentence.
func (l Limits) String() string {
	if !l.Any() {
		return NoLimits
	}
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if l.MaxConcurrent > 0 {
		say("%d at a time", l.MaxConcurrent)
	}
	if a := l.Adaptive; a != nil {
		bounds := fmt.Sprintf("at least %d", a.Min)
		if a.Max > 0 {
			bounds = fmt.Sprintf("%d to %d", a.Min, a.Max)
		}
		say("as many at a time as the node bears (%s)", bounds)
	}
	if l.FillEverySeconds > 0 {
		rate := "one every " + short(l.FillEverySeconds)
		if l.Burst > 1 {
			rate += fmt.Sprintf(" (%d at once after a quiet time)", l.Burst)
		}
		parts = append(parts, rate)
	}
	if l.MaxPulling > 0 {
		say("%d pulling images at a time", l.MaxPulling)
	}
	for _, s := range l.Signals {
		parts = append(parts, l.signalText(s))
	}
	return strings.Join(parts, ", ") + fmt.Sprintf("; a pod waits %s at most, a start counts for %s at most",
		short(l.MaxWaitSeconds), short(l.StartTimeoutSeconds))
}

func (l Limits) signalText(s SignalLimit) string {
	unit := "%"
	if s.Name == "load" {
		unit = ""
	}
	text := fmt.Sprintf("%s below %s%s", s.Name, number(s.Max), unit)
	if s.Increment > 0 {
		text += fmt.Sprintf(" (each start adds %s%s)", number(s.Increment), unit)
	}
	if s.Name == "pressure.cpu.some" && l.MinUtilization > 0 {
		text += fmt.Sprintf(" (where cpu is above %s%%)", number(l.MinUtilization))
	}
	return text
}

// number writes a number with no more digits than it has.
func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// short writes a time span without the units that are zero: "10m", not "10m0s".
func short(s Seconds) string {
	text := s.Duration().Round(time.Millisecond).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
