package throttle

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// policyString says for people what a policy holds a start for.
func (h Held) policyString() string {
	of := h.amount(h.Measured) + " of " + h.amount(h.Threshold)
	if h.Resource != "" {
		of += " " + h.Resource
	}
	switch h.Reason {
	case Unadmittable:
		if h.Resource == "" {
			return fmt.Sprintf("%s: may never run, %s pods are allowed", h.Policy, h.amount(h.Threshold))
		}
		return fmt.Sprintf("%s: may never run, it asks for %s of %s %s", h.Policy, h.amount(h.Asks), h.amount(h.Threshold), h.Resource)
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
	return h.Policy.String() + ": " + of
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
