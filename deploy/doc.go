// Package deploy holds what installs pod-pacemaker and the tests of it: the
// CRDs, the kustomize base and overlay, the systemd unit, the containerd drop-in and sample
// configs. It has no code of its own.
package deploy
