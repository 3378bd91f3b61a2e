package v1alpha1

import (
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Decimal is a number of at least 0, as the user wrote it: a whole number like 2, or a string
// of up to six digits with at most three decimal places, like "0.5". Kubernetes has no floating
// point numbers in its objects, because not every client reads the same number from the same
// text. The validation rule of each field checks both the form and the range, so that the API
// server reports one error. In a list, it cannot check the form: when an API server before 1.34
// estimates the cost of a rule, it takes a Decimal for a string of 3 MiB, and matches would cost
// too much. There the form is a pattern.
//
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=10
type Decimal intstr.IntOrString

// Milli returns the number in thousandths. It returns 0 if d is not valid.
func (d Decimal) Milli() int64 {
	n, err := strconv.ParseFloat(d.String(), 64)
	if err != nil {
		return 0
	}
	return int64(math.Round(n * 1000))
}

// Or returns the number, or def if d is nil.
func (d *Decimal) Or(def float64) float64 {
	if d == nil {
		return def
	}
	return float64(d.Milli()) / 1000
}

// String returns the number as the user wrote it, without quotes.
func (d Decimal) String() string {
	v := intstr.IntOrString(d)
	return v.String()
}

// MarshalJSON writes a number or a string, as the user wrote it.
func (d Decimal) MarshalJSON() ([]byte, error) { return intstr.IntOrString(d).MarshalJSON() }

// UnmarshalJSON accepts any whole number of at most 32 bits, and any string.
func (d *Decimal) UnmarshalJSON(data []byte) error {
	return (*intstr.IntOrString)(d).UnmarshalJSON(data)
}
