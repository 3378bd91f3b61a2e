package admin

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// HeldText returns what holds a start as text, for example "2 of 2 starting". It is empty for a reason
// without a measure.
func HeldText(h throttle.Held) string {
	switch h.Reason {
	case reasons.Concurrency:
		return fmt.Sprintf("%g of %g starting", h.Measured, h.Threshold)
	case reasons.Rate:
		return fmt.Sprintf("next start in %s, one per %s", short(Seconds(h.Measured).Duration()), short(Seconds(h.Threshold).Duration()))
	case reasons.Queued:
		if h.Measured == 0 {
			return "it is next"
		}
		return fmt.Sprintf("%g ahead", h.Measured)
	case reasons.StartAfter:
		if strings.Contains(h.For, ", ") {
			return h.For + " are not ready"
		}
		return h.For + " is not ready" // without the time: kubelet counts refusals with the same text as one event
	case reasons.NotPresent:
		return "no limit holds it, but kubelet has not retried it yet"
	case reasons.Preparing:
		return "kubelet pulls its images, or cannot make its first container yet"
	case reasons.Pulling:
		return fmt.Sprintf("%g of %g pulling images", h.Measured, h.Threshold)
	case reasons.LoadAverage:
		return fmt.Sprintf("load %.2f%s of %g", h.Measured-h.Owed, owedText(h, "%.2f"), h.Threshold)
	case reasons.CPULoad, reasons.IOLoad, reasons.Pressure:
		return fmt.Sprintf("%s %.0f%%%s of %g%%", h.Signal, h.Measured-h.Owed, owedText(h, "%.0f%%"), h.Threshold)
	case reasons.PolicyStarting, reasons.PolicyRunning, reasons.PolicyPacer, reasons.PolicyClaim, reasons.Unadmittable:
		return policyText(h)
	case gate.NodeShutdown:
		return "no pod starts any more"
	case gate.Order:
		return "an earlier container of the pod waits"
	case reasons.Deleted:
		return "the pod is deleted"
	case reasons.GateFull:
		text := fmt.Sprintf("%g pods before it or near their turn, %g allowed", h.Measured, h.Threshold)
		if h.NoneEnded {
			text += ": no start has ended yet, so nothing is known of how long they take"
		}
		return text
	default:
		return ""
	}
}

// owedText returns what is added for starts that are not measured yet; empty if nothing is.
func owedText(h throttle.Held, format string) string {
	if h.Owed <= 0 {
		return ""
	}
	return fmt.Sprintf(" and "+format+" for starts not measured yet", h.Owed)
}

// policyText returns what a StartPolicy holds a start for.
func policyText(h throttle.Held) string {
	of := amountText(h, h.Measured) + " of " + amountText(h, h.Threshold)
	if h.Resource != "" {
		of += " " + h.Resource
	}
	switch h.Reason {
	case reasons.Unadmittable:
		if h.Resource == "" {
			return fmt.Sprintf("%s: may never run, %s pods are allowed", groupText(h.Policy), amountText(h, h.Threshold))
		}
		return fmt.Sprintf("%s: may never run, it asks for %s of %s %s", groupText(h.Policy), amountText(h, h.Asks), amountText(h, h.Threshold), h.Resource)
	case reasons.PolicyRunning:
		of += " running"
	case reasons.PolicyPacer:
		of += " starting in addition to the ready pods"
	case reasons.PolicyClaim:
		of += " starting on the slots of this node"
	default:
		of += " starting"
	}
	if h.Resource != "" {
		of += ", it asks for " + amountText(h, h.Asks)
	}
	return groupText(h.Policy) + ": " + of
}

// amountText returns an amount of the resource as a pod has it, or a number of pods if there is no resource.
func amountText(h throttle.Held, units float64) string {
	if h.Resource == "" {
		return strconv.FormatInt(int64(math.Round(units)), 10)
	}
	return startpolicy.Amount(h.Resource, int64(math.Round(units*1000)))
}

// groupText names a policy and its group.
func groupText(k throttle.GroupKey) string {
	if k.Group == "" {
		return "policy " + k.Policy
	}
	return "policy " + k.Policy + " (" + k.Group + ")"
}
