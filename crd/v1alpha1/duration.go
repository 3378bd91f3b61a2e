package v1alpha1

import (
	"fmt"
	"regexp"
	"time"
)

// Duration is a time span as the user wrote it: one to four whole numbers of up
// to five digits, each with its unit h, m, s or ms, like "1m30s". The empty
// string is not a duration. The fields' own rules check the form as well as the
// bounds, so that the API server says once what it expected.
//
// +kubebuilder:validation:MaxLength=28
type Duration string

var durationPattern = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)

// Parse returns the time span, which is never negative, or an error that says
// what a duration looks like.
func (d Duration) Parse() (time.Duration, error) {
	if !durationPattern.MatchString(string(d)) {
		return 0, fmt.Errorf("%q is not a duration in whole h, m, s or ms, like \"1m30s\"", string(d))
	}
	return time.ParseDuration(string(d))
}

// Or reads d, or gives def where d is absent or no duration.
func (d *Duration) Or(def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	if v, err := d.Parse(); err == nil {
		return v
	}
	return def
}
