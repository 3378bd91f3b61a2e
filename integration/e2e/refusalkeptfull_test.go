//go:build e2e && full

package e2e

import "testing"

// On every supported line of containerd, a herd with many refused pods starts after containerd was
// killed and started again. A containerd that keeps what is left of a refused sandbox would never
// start again, so the daemon refuses nothing at the sandbox there, whatever the flags say.
func TestRefusalsNeverKeepTheRuntimeFromStarting(t *testing.T) {
	for name, keeps := range map[string]bool{
		"containerd@2.0": true, "containerd@2.1": true, "containerd@2.2": true,
		"containerd@2.2.9": false, "containerd@2.3": false, "containerd@1.7": false,
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, name, "")
			refusalsKeepNoRuntimeFromStarting(t, keeps)
		})
	}
}
