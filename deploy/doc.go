// Package deploy holds what installs pod-pacemaker and the tests of it: the
// CRDs, the Helm chart, the kustomize base that is rendered from it, the systemd unit, the
// containerd drop-in, the dashboard, the alert rules and sample
// configs. It has no code of its own.
package deploy

//go:generate go test . -run ^TestTheReferenceIsCurrent$ -update
