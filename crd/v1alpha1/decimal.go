package v1alpha1

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Decimal is a number of at least 0, as the user wrote it: a whole number like 2, or a string
// of up to six digits with at most three decimal places, like "0.5". Kubernetes has no floating
// point numbers in its objects, because not every client reads the same number from the same
// text. The validation rule of each field checks both the form and the bounds, so that the API
// server reports one error. In a list, it cannot check the form: when an API server before 1.34
// estimates the cost of a rule, it takes a Decimal for a string of 3 MiB, and matches would cost
// too much. There the form is a pattern.
//
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=10
type Decimal intstr.IntOrString

var decimalPattern = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,3})?$`)

// Milli returns the exact number in thousandths. If d is negative or not a decimal, the error
// says what a decimal looks like.
func (d Decimal) Milli() (int64, error) {
	if d.Type == intstr.Int && d.IntVal >= 0 {
		return int64(d.IntVal) * 1000, nil
	}
	if d.Type == intstr.String && decimalPattern.MatchString(d.StrVal) {
		whole, places, _ := strings.Cut(d.StrVal, ".")
		return strconv.ParseInt(whole+(places + "000")[:3], 10, 64)
	}
	return 0, fmt.Errorf("%q is not a number with at most three decimal places, like 80 or \"0.5\"", d.String())
}

// Or returns the number, or def if d is nil or not a decimal.
func (d *Decimal) Or(def float64) float64 {
	if d == nil {
		return def
	}
	milli, err := d.Milli()
	if err != nil {
		return def
	}
	return float64(milli) / 1000
}

// String returns the number as the user wrote it, without quotes.
func (d Decimal) String() string {
	v := intstr.IntOrString(d)
	return v.String()
}

// MarshalJSON writes a number or a string, as the user wrote it.
func (d Decimal) MarshalJSON() ([]byte, error) { return intstr.IntOrString(d).MarshalJSON() }

// UnmarshalJSON accepts any whole number of at most 32 bits, and any string. Milli returns an error if that is no decimal.
func (d *Decimal) UnmarshalJSON(data []byte) error {
	return (*intstr.IntOrString)(d).UnmarshalJSON(data)
}
