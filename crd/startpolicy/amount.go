package startpolicy

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount formats an amount of a resource, which is in thousandths of the resource's unit. Memory, ephemeral storage and
// huge pages get a binary suffix, like Mi, where that is exact.
func Amount(name string, milli int64) string {
	if milli%1000 == 0 {
		return resource.NewQuantity(milli/1000, format(name)).String()
	}
	return resource.NewMilliQuantity(milli, resource.DecimalSI).String()
}

// AddAmounts adds amounts that Amount has formatted, and formats the sum. The order does not matter. A text that is not an
// amount counts as 0.
func AddAmounts(name, a, b string) string {
	sum, _ := resource.ParseQuantity(a)
	more, _ := resource.ParseQuantity(b)
	sum.Add(more)
	sum.Format = format(name) // else the sum has the format of a
	return sum.String()
}

func format(name string) resource.Format {
	if name == "memory" || name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-") {
		return resource.BinarySI
	}
	return resource.DecimalSI
}
