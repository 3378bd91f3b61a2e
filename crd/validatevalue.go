package crd

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// span is the range of a duration field.
type span struct {
	min, max time.Duration
	orZero   bool // also accepts 0, below min
	want     string
}

var (
	longSpan   = span{time.Second, 24 * time.Hour, false, `must be a duration from 1s to 24h in whole h, m, s or ms, like "5m"`}
	settleSpan = span{0, time.Hour, false, `must be a duration from 0s to 1h in whole h, m, s or ms, like "5s"`}
	fillSpan   = span{time.Millisecond, time.Hour, false, `must be a duration from 1ms to 1h in whole h, m, s or ms, like "1s"`}
	loanSpan   = span{time.Second, time.Hour, true, `must be 0s, or a duration from 1s to 1h in whole h, m, s or ms, like "10s"`}
	windowSpan = span{500 * time.Millisecond, time.Minute, false, `must be a duration from 500ms to 1m in whole h, m, s or ms, like "2s"`}
	afterSpan  = span{time.Second, time.Hour, false, `must be a duration from 1s to 1h in whole h, m, s or ms, like "2m"`}
	openSpan   = span{time.Second, time.Hour, false, `must be a duration from 1s to 1h in whole h, m, s or ms, like "30s"`}
)

// decimals is the range of a decimal field, in thousandths.
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
	multiplier      = decimals{1, 1_000_000, `must be a number from "0.001" to 1000 with at most three decimal places, like 4 or "1.5"`}
)

// checker collects the errors of an object. It stands at one place of the object, and its methods check the value
// there, or the field of this name.
type checker struct {
	path   *field.Path
	faults *field.ErrorList
}

func (c checker) at(name string, more ...string) checker {
	return checker{c.path.Child(name, more...), c.faults}
}

func (c checker) index(i int) checker { return checker{c.path.Index(i), c.faults} }

func (c checker) add(fault *field.Error) { *c.faults = append(*c.faults, fault) }

// invalid adds an error for each of wants.
func (c checker) invalid(value any, begin string, wants ...string) {
	for _, want := range wants {
		c.add(field.Invalid(c.path, value, begin+want))
	}
}

// anyOf checks that at least one of the fields is set.
func (c checker) anyOf(want string, set ...bool) {
	if !slices.Contains(set, true) {
		c.add(field.Required(c.path, want))
	}
}

// atMost checks the number of entries of the list or mapping, and reports whether it is accepted.
func (c checker) atMost(most, entries int) bool {
	if entries > most {
		c.add(field.TooMany(c.path, entries, most))
	}
	return entries <= most
}

// starts checks an optional number of pods.
func (c checker) starts(name string, n *int32) { c.whole(name, n, 1, maxStarts) }

// whole checks an optional whole number.
func (c checker) whole(name string, n *int32, lowest, highest int32) {
	if n != nil && (*n < lowest || *n > highest) {
		c.at(name).invalid(*n, "", fmt.Sprintf("must be a whole number from %d to %d", lowest, highest))
	}
}

// span checks an optional duration.
func (c checker) span(name string, d *v1alpha1.Duration, s span) {
	if d == nil {
		return
	}
	if v, err := d.Parse(); err != nil || (v < s.min || v > s.max) && (v != 0 || !s.orZero) {
		c.at(name).invalid(string(*d), "", s.want)
	}
}

// required checks a required decimal.
func (c checker) required(name string, d *v1alpha1.Decimal, accepted decimals) {
	c.at(name).anyOf(accepted.want, d != nil)
	c.decimal(name, d, accepted)
}

// decimal checks an optional decimal.
func (c checker) decimal(name string, d *v1alpha1.Decimal, accepted decimals) {
	if d == nil {
		return
	}
	if milli, err := d.Milli(); err != nil || milli < accepted.min || milli > accepted.max {
		c.at(name).invalid(d.String(), "", accepted.want)
	}
}

// oneOf checks that an optional word is known.
func oneOf[T ~string](c checker, name string, word T, known ...T) {
	if word != "" && !slices.Contains(known, word) {
		c.add(field.NotSupported(c.path.Child(name), word, known))
	}
}
