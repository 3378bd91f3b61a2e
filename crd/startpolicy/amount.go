package startpolicy

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount formats an amount of a resource, given in thousandths of its unit. Bytes are in
// Ki, Mi or Gi where that is exact.
func Amount(name string, milli int64) string {
	format := resource.DecimalSI
	if name == "memory" || name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-") {
		format = resource.BinarySI
	}
	if milli%1000 == 0 {
		return resource.NewQuantity(milli/1000, format).String()
	}
	return resource.NewMilliQuantity(milli, resource.DecimalSI).String()
}

// Milli parses what Amount returned. It returns 0 for text that is not an amount, and
// math.MaxInt64 for a larger amount.
func Milli(amount string) int64 {
	q, err := resource.ParseQuantity(amount)
	if err != nil {
		return 0
	}
	if q.Cmp(*resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)) > 0 {
		return math.MaxInt64
	}
	return q.MilliValue()
}
