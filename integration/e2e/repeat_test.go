//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tries is the maximum number of tries of a scenario.
const tries = 3

// repeated runs tries of a scenario until one can be judged. try returns why it cannot be judged,
// with the measurement, or nothing if it was judged; then its assertions are the verdict. A failed
// assertion ends the scenario at once. The figures list every discarded try, with its cause and
// what other work took of the machine meanwhile. A scenario without a judged try fails.
func repeated(t *testing.T, try func(t *testing.T) (discarded string)) {
	t.Helper()
	var causes []string
	for n := 1; n <= tries; n++ {
		before, cause := readMachine(t), ""
		require.True(t, t.Run(fmt.Sprintf("try %d", n), func(t *testing.T) { cause = try(t) }))
		if cause == "" {
			return
		}
		causes = append(causes, fmt.Sprintf("try %d of %d is discarded: %s; %s", n, tries, cause, before.since(t)))
		figure(t, "%s", causes[n-1])
	}
	require.Fail(t, "no try could be judged", strings.Join(causes, "\n"))
}

// above says that the measurement is above its bound, or returns nothing.
func above(what string, measured, bound float64) string {
	if measured <= bound {
		return ""
	}
	return fmt.Sprintf("%s: %.2f is above %.2f", what, measured, bound)
}
