package v1alpha1

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Decimal is a number that is not negative as the user wrote it: a whole number
// like 2, or in quotes one of up to six digits with at most three decimal places,
// like "0.5". Kubernetes keeps floating point out of its objects, because not
// every client reads the same number from the same text. The fields' own rules
// check the form as well as the bounds, so that the API server says once what it
// expected.
//
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=10
type Decimal intstr.IntOrString

var decimalPattern = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,3})?$`)

// Milli reads the number exactly, in thousandths; negative numbers, and what is
// no decimal, are errors that say what one looks like.
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

// Or is the number, or def where d is absent or no decimal.
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

// String is the number as the user wrote it, without quotes.
func (d Decimal) String() string {
	v := intstr.IntOrString(d)
	return v.String()
}

// MarshalJSON writes a number or a string, as the user wrote it.
func (d Decimal) MarshalJSON() ([]byte, error) { return intstr.IntOrString(d).MarshalJSON() }

// UnmarshalJSON reads a number or a string; whether that is a decimal, Milli
// tells.
func (d *Decimal) UnmarshalJSON(data []byte) error {
	return (*intstr.IntOrString)(d).UnmarshalJSON(data)
}
