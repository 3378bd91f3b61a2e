package main

import (
	"fmt"
	"strings"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// limitsOf gives the limits that a configuration means on a node with so many
// cores.
func limitsOf(spec v1alpha1.PacemakerConfigSpec, cores int) admin.Limits {
	l := admin.Limits{
		MaxWaitSeconds:      admin.Seconds(spec.GetMaxWait().Seconds()),
		StartTimeoutSeconds: admin.Seconds(spec.GetStartTimeout().Seconds()),
	}
	l.MaxConcurrent, _ = spec.ThrottleConfig.ConcurrencyLimit(cores)
	if every, burst, limited := spec.ThrottleConfig.StartRate(); limited {
		l.FillEverySeconds, l.Burst = admin.Seconds(every.Seconds()), burst
	}
	return l
}

// limitsText says limits in one sentence.
func limitsText(l admin.Limits) string {
	var parts []string
	if l.MaxConcurrent > 0 {
		parts = append(parts, fmt.Sprintf("%d at a time", l.MaxConcurrent))
	}
	if l.FillEverySeconds > 0 {
		rate := "one every " + human(l.FillEverySeconds.Duration())
		if l.Burst > 1 {
			rate += fmt.Sprintf(" (%d at once after a quiet time)", l.Burst)
		}
		parts = append(parts, rate)
	}
	if len(parts) == 0 {
		return "none: no pod is held back"
	}
	return strings.Join(parts, ", ") + fmt.Sprintf("; a pod waits %s at most, a start counts for %s at most",
		human(l.MaxWaitSeconds.Duration()), human(l.StartTimeoutSeconds.Duration()))
}
