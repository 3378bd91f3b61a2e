//go:build e2e && full

package e2e

import "testing"

// The same as TestPodsTooLargeToListEndNoRuntime, beside 30 other pods. A containerd that lists them
// fails instead.
func TestPodsTooLargeToListBesideOthersEndNoRuntime(t *testing.T) { doNotEndTheRuntime(t, 30) }
