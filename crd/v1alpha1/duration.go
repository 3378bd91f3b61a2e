package v1alpha1

import "time"

// Duration is a length of time as the user wrote it: one to four whole numbers of up to five
// digits, each with its unit h, m, s or ms, like "1m30s". The empty string is not a duration. The
// validation rule of each field checks both the form and the range, so that the API server
// reports one error.
//
// +kubebuilder:validation:MaxLength=28
type Duration string

// Or returns the duration, or def if d is nil or not valid.
func (d *Duration) Or(def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	if v, err := time.ParseDuration(string(*d)); err == nil && v >= 0 {
		return v
	}
	return def
}
