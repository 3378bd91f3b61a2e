// Package e2e holds the scenarios: what pod-pacemaker promises, shown on a real
// one-node cluster of containerd, runc, kubelet and kube-apiserver. One cluster
// serves all scenarios, one after the other.
//
// What a scenario asserts comes from kubelet and containerd: the moment of
// readiness from kubelet's log, the moment of a start from the process itself
// and from CRI, restarts and phases from the API. The daemon's own counters only
// tell that a scenario really went the way it is about. The daemon has a service
// account's token and the shipped rights, which the API server has to find enough.
//
// What depends on the machine is judged as a ratio to a measurement of the same run,
// and what other work took of the machine is measured beside it. A try that cannot be
// judged is repeated and told of, see repeated; how herds are judged stands in
// herdjudge_test.go.
//
// The files of the scenarios have the build tag e2e; `make e2e` runs them. The
// long ones have the tag full too; `make e2e-full` runs all. README.md lists them.
package e2e

//go:generate go run ../cmd/scenarios -folder .
