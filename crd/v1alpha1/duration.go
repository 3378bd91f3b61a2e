package v1alpha1

import (
	"fmt"
	"regexp"
	"time"
)

// Duration is a length of time as the user wrote it: one to four whole numbers of up to five
// digits, each with its unit h, m, s or ms, like "1m30s". The empty string is not a duration. The
// validation rule of each field checks both the form and the bounds, so that the API server
// reports one error.
//
// +kubebuilder:validation:MaxLength=28
type Duration string

var durationPattern = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)

// Parse returns the duration, which is never negative. If d is not a duration, the error says what
// one looks like.
func (d Duration) Parse() (time.Duration, error) {
	if !durationPattern.MatchString(string(d)) {
		return 0, fmt.Errorf("%q is not a duration in whole h, m, s or ms, like \"1m30s\"", string(d))
	}
	return time.ParseDuration(string(d))
}

// Or returns the duration, or def if d is nil or not a duration.
func (d *Duration) Or(def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	if v, err := d.Parse(); err == nil {
		return v
	}
	return def
}
