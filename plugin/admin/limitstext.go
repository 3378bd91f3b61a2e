package admin

import (
	"fmt"
	"strings"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// NoLimits is the text of LimitsText if no limit is set.
const NoLimits = "none: no pod is held"

// LimitsText describes the limits of these settings in one sentence.
func LimitsText(s throttle.Settings) string {
	s = s.WithDefaults()
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case s.CountsCores():
		add("as many at a time as are expected to keep %d cores busy", s.MaxConcurrent)
	case s.MaxConcurrent > 0:
		add("%d at a time", s.MaxConcurrent)
	}
	if a := s.Adaptive; a != nil {
		span := fmt.Sprintf("at least %d", max(1, a.Min))
		if a.Max > 0 {
			span = fmt.Sprintf("%d to %d", max(1, a.Min), a.Max)
		}
		add("as many at a time as the node can handle (%s)", span)
	}
	if s.FillEvery > 0 {
		rate := "one every " + short(s.FillEvery)
		if s.Burst > 1 {
			rate += fmt.Sprintf(" (%d at once after a quiet time)", s.Burst)
		}
		parts = append(parts, rate)
	}
	if s.MaxPulling > 0 {
		add("%d pulling images at a time", s.MaxPulling)
	}
	for i, limit := range s.Signals {
		if limit.Max > 0 {
			parts = append(parts, signalText(throttle.Signal(i), limit, s.MinUtilization))
		}
	}
	if len(parts) == 0 {
		return NoLimits
	}
	return strings.Join(parts, ", ") + fmt.Sprintf("; a pod may start over the limit after %s, a start counts for %s at most", short(s.MaxWait), short(s.StartTimeout))
}

func signalText(signal throttle.Signal, limit throttle.SignalLimit, minUtilization float64) string {
	unit := "%"
	if signal == throttle.SignalLoad {
		unit = ""
	}
	text := fmt.Sprintf("%s below %g%s", signal, limit.Max, unit)
	if limit.Increment > 0 {
		text += fmt.Sprintf(" (each start adds %g%s)", limit.Increment, unit)
	}
	if signal == throttle.SignalCPUPressure && minUtilization > 0 {
		text += fmt.Sprintf(" (where cpu is above %g%%)", minUtilization)
	}
	return text
}

// short formats a duration without units that are zero: "10m", not "10m0s".
func short(d time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.Round(time.Millisecond).String())
}

// MaxWaitWarning returns a warning if pods may wait for so long that others give them up, or if maxWait is over before
// starts that may be as long as startTimeout; empty if neither is so. startTimeout counts if it is longer than usual.
func MaxWaitWarning(maxWait, startTimeout time.Duration) string {
	const usual = 5 * time.Minute
	switch {
	case maxWait <= usual && startTimeout > max(maxWait, usual):
		return fmt.Sprintf("behind starts that take longer than the maxWait of %s, one start at a time is over the limit all the time; only a longer maxWait avoids that", short(maxWait))
	case maxWait <= usual:
		return ""
	}
	return fmt.Sprintf("with a maxWait of %s, helm gives up after 5m, and a Deployment after its progressDeadlineSeconds (10m), while pods wait", short(maxWait))
}

// PercentWarning returns a warning if the limit on the use of the CPUs holds starts on a node that is all but idle, as
// where a fraction was meant; empty if it does not.
func PercentWarning(s throttle.Settings) string {
	most := s.Signals[throttle.SignalCPU].Max
	if most <= 0 || most > 1 {
		return ""
	}
	return "no node with work to do has " + signalText(throttle.SignalCPU, throttle.SignalLimit{Max: most}, 0) + ": limits are in percent, like 80"
}

// ConfigText describes the limits of a configuration, which s has, and after which pods others start.
func ConfigText(s throttle.Settings, spec v1alpha1.PacemakerConfigSpec) string {
	limits, after := LimitsText(s), startAfterText(spec)
	switch {
	case after == "":
		return limits
	case limits == NoLimits:
		return after
	default:
		return limits + "; " + after
	}
}

// startAfterText says after which pods others start, or "" if they wait for none.
func startAfterText(spec v1alpha1.PacemakerConfigSpec) string {
	parts := make([]string, 0, len(spec.StartAfter))
	for _, a := range spec.StartAfter {
		text := fmt.Sprintf("%s, for at most %s", a, short(a.GetTimeout()))
		if a.Again {
			text += " each time"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 || spec.GetMode() == v1alpha1.ModeDisabled {
		return ""
	}
	return "after a boot, pods wait until each of these is ready: " + strings.Join(parts, "; ")
}

// StartAfterWarning returns a warning if pods that others wait for may have to wait themselves; empty if not.
func StartAfterWarning(spec v1alpha1.PacemakerConfigSpec) string {
	var parts []string
	for _, a := range spec.StartAfter {
		if !a.SureToStart(spec.Exemptions) {
			parts = append(parts, a.String())
		}
	}
	if len(parts) == 0 || spec.GetMode() == v1alpha1.ModeDisabled {
		return ""
	}
	return "startAfter names pods that the exemptions do not, so they wait for themselves unless they are static or critical: " + strings.Join(parts, "; ")
}
