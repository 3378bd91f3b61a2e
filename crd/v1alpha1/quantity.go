package v1alpha1

import (
	"encoding/json"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The form of a Quantity is a pattern and not part of the rule: API servers before 1.34 refuse a rule that matches an amount,
// for what they estimate that to cost. The rule costs little and says what an amount looks like, for most faults. It has
// [int] because type(self) == int costs as much as to read 3 MiB.

// Quantity is an amount of a resource as in Kubernetes, of at least 0 and without an exponent: a
// whole number like 2, or text like "200m", "1.5Gi" or "64M". It is less than 1000Ti.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:Pattern=`^([0-9]{1,15}m?|[0-9]{1,12}([.][0-9]{1,3})?(k|Ki)?|[0-9]{1,9}([.][0-9]{1,3})?(M|Mi)|[0-9]{1,6}([.][0-9]{1,3})?(G|Gi)|[0-9]{1,3}([.][0-9]{1,3})?(T|Ti))$`
// +kubebuilder:validation:XValidation:rule="type(self) in [int] ? self >= 0 && self <= 999999999999999 : self.charAt(0) in ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'] && self.charAt(self.size() - 1) in ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'm', 'k', 'M', 'G', 'T', 'i']",message="must be an amount from 0 to 999Ti, like 2, 200m or 1.5Gi"
type Quantity string

// Milli returns the amount in thousandths, rounded up. The error says that q is not valid.
func (q Quantity) Milli() (int64, error) {
	v, err := resource.ParseQuantity(string(q))
	return v.MilliValue(), err
}

// UnmarshalJSON accepts any whole number or string. Milli returns an error if that is no amount.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	if _, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		*q = Quantity(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(q))
}
