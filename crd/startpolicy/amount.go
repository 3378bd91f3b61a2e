package startpolicy

import (
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
