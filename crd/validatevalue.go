package crd

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// span is what a duration field accepts.
type span struct {
	min, max time.Duration
	orZero   bool // 0 too, though min is above
	want     string
}

var (
	longSpan   = span{time.Second, 24 * time.Hour, false, `must be a duration from 1s to 24h in whole h, m, s or ms, like "5m"`}
	settleSpan = span{0, time.Hour, false, `must be a duration from 0s to 1h in whole h, m, s or ms, like "5s"`}
	fillSpan   = span{time.Millisecond, time.Hour, false, `must be a duration from 1ms to 1h in whole h, m, s or ms, like "1s"`}
	loanSpan   = span{time.Second, time.Hour, true, `must be 0s, or a duration from 1s to 1h in whole h, m, s or ms, like "10s"`}
	windowSpan = span{500 * time.Millisecond, time.Minute, false, `must be a duration from 500ms to 1m in whole h, m, s or ms, like "2s"`}
)

// decimals is what a decimal field accepts, in thousandths.
type decimals struct {
	min, max int64
	want     string
}

var (
	perCore         = decimals{1, 100_000, `must be a number from "0.001" to 100 with at most three decimal places, like "0.5"`}
	percentage      = decimals{1, 100_000, `must be a percentage from "0.001" to 100 with at most three decimal places, like 80 or "62.5"`}
	percentageAdded = decimals{0, 100_000, `must be a percentage from 0 to 100 with at most three decimal places, like 10 or "2.5"`}
	load            = decimals{1, 100_000_000, `must be a number from "0.001" to 100000 with at most three decimal places, like 8 or "1.5"`}
	loadAdded       = decimals{0, 100_000_000, `must be a number from 0 to 100000 with at most three decimal places, like 1 or "0.5"`}
)

// validateStarts checks a number of pods that is there.
func validateStarts(path *field.Path, n *int32) field.ErrorList {
	return validateRange(path, n, 1, maxStarts, "1 to 1000")
}

// validateRange checks a number that is there.
func validateRange(path *field.Path, n *int32, lowest, highest int32, want string) field.ErrorList {
	if n == nil || *n >= lowest && *n <= highest {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *n, "must be a whole number from "+want)}
}

// validateSpan checks a duration that is there.
func validateSpan(path *field.Path, d *v1alpha1.Duration, s span) field.ErrorList {
	if d == nil {
		return nil
	}
	if v, err := d.Parse(); err == nil && (v >= s.min && v <= s.max || v == 0 && s.orZero) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, string(*d), s.want)}
}

// validateRequired checks a decimal that has to be there.
func validateRequired(path *field.Path, d *v1alpha1.Decimal, accepted decimals) field.ErrorList {
	if d == nil {
		return field.ErrorList{field.Required(path, accepted.want)}
	}
	return validateDecimal(path, d, accepted)
}

// validateDecimal checks a decimal that is there.
func validateDecimal(path *field.Path, d *v1alpha1.Decimal, accepted decimals) field.ErrorList {
	if d == nil {
		return nil
	}
	if milli, err := d.Milli(); err == nil && milli >= accepted.min && milli <= accepted.max {
		return nil
	}
	return field.ErrorList{field.Invalid(path, d.String(), accepted.want)}
}
