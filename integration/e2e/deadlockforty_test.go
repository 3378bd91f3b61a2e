//go:build e2e && full

package e2e

import "testing"

// With many in line before the database, the loans have to grow.
func TestDeadlockOfFortyAndADatabase(t *testing.T) {
	deadlock(t, 40, func(*testing.T, string) {})
}
