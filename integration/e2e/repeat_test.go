//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tries is how often a scenario is measured at most.
const tries = 3

// repeated measures a scenario until a try can be judged. try gives why it cannot be,
// with what was measured; empty: it was judged, and what it asserted is the verdict.
// A failed assertion ends the scenario at once. Every discarded try is in the figures,
// with its cause and with what other work took of the machine meanwhile. A scenario
// of which no try could be judged fails.
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

// above says that what was measured is above its bound; empty: it is not.
func above(what string, measured, bound float64) string {
	if measured <= bound {
		return ""
	}
	return fmt.Sprintf("%s: %.2f is above %.2f", what, measured, bound)
}
