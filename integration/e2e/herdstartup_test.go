//go:build e2e && full

package e2e

import "testing"

// With a startup probe, liveness probes wait for it: the herd is paced just the same.
func TestHerdWithStartupProbe(t *testing.T) {
	pacedHerd(t, withLiveness, withStartup)
}
