package throttle

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// String says what was measured against what, for people.
func (h Held) String() string {
	switch h.Reason {
	case Concurrency:
		return fmt.Sprintf("%g of %g starting", h.Measured, h.Threshold)
	case Rate:
		return fmt.Sprintf("next start in %s, one per %s", seconds(h.Measured), seconds(h.Threshold))
	case Queued:
		return fmt.Sprintf("%g ahead", h.Measured)
	case NotPresent:
		return "nothing holds it, nobody has come back for it yet"
	case Pulling:
		return fmt.Sprintf("%g of %g pulling images", h.Measured, h.Threshold)
	case LoadAverage:
		return fmt.Sprintf("load %.2f%s of %g", h.Measured-h.Owed, h.owed("%.2f"), h.Threshold)
	case CPULoad, IOLoad, Pressure:
		return fmt.Sprintf("%s %.0f%%%s of %g%%", spoken[h.Signal], h.Measured-h.Owed, h.owed("%.0f%%"), h.Threshold)
	case PolicyStarting, PolicyRunning, PolicyPacer, PolicyClaim, Unadmittable:
		return h.policyString()
	case NodeShutdown:
		return "nothing starts any more"
	case GateRoom:
		return fmt.Sprintf("%g go before it, room for %g near their turn", h.Measured, h.Threshold)
	default:
		return ""
	}
}

// owed says what is owed, if anything is.
func (h Held) owed(format string) string {
	if h.Owed <= 0 {
		return ""
	}
	return fmt.Sprintf(" and "+format+" for starts not measured yet", h.Owed)
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

// policyString says for people what a policy holds a start for.
func (h Held) policyString() string {
	of := h.amount(h.Measured) + " of " + h.amount(h.Threshold)
	if h.Resource != "" {
		of += " " + h.Resource
	}
	switch h.Reason {
	case Unadmittable:
		if h.Resource == "" {
			return fmt.Sprintf("%s: may never run, %s pods are allowed", policyText(h.Policy), h.amount(h.Threshold))
		}
		return fmt.Sprintf("%s: may never run, it asks for %s of %s %s", policyText(h.Policy), h.amount(h.Asks), h.amount(h.Threshold), h.Resource)
	case PolicyRunning:
		of += " running"
	case PolicyPacer:
		of += " starting beside those that are ready"
	case PolicyClaim:
		of += " starting, as this node has claims"
	default:
		of += " starting"
	}
	if h.Resource != "" {
		of += ", it asks for " + h.amount(h.Asks)
	}
	return policyText(h.Policy) + ": " + of
}

// amount says so much of the resource as people write it: in thousandths where it is
// no whole number, a number of bytes with a binary suffix where that is exact.
func (h Held) amount(units float64) string {
	thousandths := int64(math.Round(units * 1000))
	if h.Resource == "" {
		return strconv.FormatInt(thousandths/1000, 10)
	}
	if thousandths%1000 != 0 {
		return strconv.FormatInt(thousandths, 10) + "m"
	}
	whole, suffix := thousandths/1000, ""
	if h.Resource == "memory" || h.Resource == "ephemeral-storage" || strings.HasPrefix(h.Resource, "hugepages-") {
		for _, s := range []string{"Ki", "Mi", "Gi", "Ti"} {
			if whole == 0 || whole%1024 != 0 {
				break
			}
			whole, suffix = whole/1024, s
		}
	}
	return strconv.FormatInt(whole, 10) + suffix
}

var spoken = map[Signal]string{SignalCPU: "cpu", SignalIOWait: "iowait", SignalLoad: "load", SignalCPUPressure: "cpu pressure", SignalIOFull: "full io pressure"}

func policyText(k GroupKey) string {
	if k.Group == "" {
		return "policy " + k.Policy
	}
	return "policy " + k.Policy + " (" + k.Group + ")"
}
