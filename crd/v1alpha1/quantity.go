package v1alpha1

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Quantity is an amount of a resource as in Kubernetes, not negative and without
// exponent: a whole number like 2, or text like "200m", "1.5Gi" or "64M", of less than
// a thousand Ti.
//
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 999999999999999 : self.matches('^([0-9]{1,15}m?|[0-9]{1,12}([.][0-9]{1,3})?(k|Ki)?|[0-9]{1,9}([.][0-9]{1,3})?(M|Mi)|[0-9]{1,6}([.][0-9]{1,3})?(G|Gi)|[0-9]{1,3}([.][0-9]{1,3})?(T|Ti))$')",message="must be an amount from 0 to 999Ti, like 2, 200m or 1.5Gi"
type Quantity intstr.IntOrString

// The rule of the custom resource definition, and what it expects.
var quantityPattern = regexp.MustCompile(`^([0-9]{1,15}m?|[0-9]{1,12}([.][0-9]{1,3})?(k|Ki)?|[0-9]{1,9}([.][0-9]{1,3})?(M|Mi)|[0-9]{1,6}([.][0-9]{1,3})?(G|Gi)|[0-9]{1,3}([.][0-9]{1,3})?(T|Ti))$`)

// Milli reads the amount in thousandths, rounded up; what is no such amount is an
// error that says what one looks like.
func (q Quantity) Milli() (int64, error) {
	if quantityPattern.MatchString(q.String()) {
		if v, err := resource.ParseQuantity(q.String()); err == nil {
			return v.MilliValue(), nil
		}
	}
	return 0, fmt.Errorf("%q is not an amount from 0 to 999Ti, like 2, 200m or 1.5Gi", q.String())
}

// NewQuantity returns the amount that a text says; whether it says one, Milli tells.
func NewQuantity(text string) Quantity { return Quantity(intstr.FromString(text)) }

// String is the amount as the user wrote it, without quotes.
func (q Quantity) String() string {
	v := intstr.IntOrString(q)
	return v.String()
}

// MarshalJSON writes a string.
func (q Quantity) MarshalJSON() ([]byte, error) { return json.Marshal(q.String()) }

// UnmarshalJSON reads a number or a string; whether that is an amount, Milli tells.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	switch v := value.(type) {
	case nil:
	case string:
		*q = NewQuantity(v)
	case float64:
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return fmt.Errorf("%s is not a whole number", data)
		}
		*q = NewQuantity(strconv.FormatInt(int64(v), 10))
	default:
		return fmt.Errorf("%s is neither a number nor a string", data)
	}
	return nil
}
