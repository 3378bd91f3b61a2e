//go:build e2e && full

package e2e

import (
	"testing"
	"time"
)

// The same with the gate's own timeout.
func TestStartsOfMinutes(t *testing.T) {
	startsThatOutlastTheGate(t, 8, 150*time.Second)
}
