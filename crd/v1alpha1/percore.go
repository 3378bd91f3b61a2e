package v1alpha1

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// MaxMilliPerCore is the largest perCore, in thousandths of a pod per core.
const MaxMilliPerCore = 100_000

var decimalPattern = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,3})?$`)

// MilliPerCore reads a perCore value exactly, in thousandths of a pod per core,
// from 1 to MaxMilliPerCore, or returns an error that says what was expected.
func MilliPerCore(v intstr.IntOrString) (int64, error) {
	milli := int64(v.IntVal) * 1000
	if v.Type == intstr.String {
		milli = milliOf(v.StrVal)
	}
	if milli < 1 || milli > MaxMilliPerCore {
		return 0, fmt.Errorf("%q is not a number from 0.001 to 100 with at most three decimal places", v.String())
	}
	return milli, nil
}

// milliOf reads a decimal in thousandths; 0 where it is none.
func milliOf(s string) int64 {
	if !decimalPattern.MatchString(s) {
		return 0
	}
	whole, places, _ := strings.Cut(s, ".")
	// The pattern leaves at most six digits, which always parse.
	milli, err := strconv.ParseInt(whole+(places + "000")[:3], 10, 64)
	if err != nil {
		return 0
	}
	return milli
}
