package startpolicy

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount writes an amount of a resource, in thousandths of its unit, the way that
// people read it: bytes in Ki, Mi and Gi where that is exact.
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

// Milli reads what Amount wrote; 0 for what is no amount, and math.MaxInt64 for what is
// more than that.
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
