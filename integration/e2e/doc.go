// Package e2e holds the scenarios: what pod-pacemaker promises, shown on a real one-node cluster of
// containerd, runc, kubelet and kube-apiserver. One cluster serves all scenarios, one after the
// other.
//
// Assertions rest on kubelet and containerd. The time of readiness comes from kubelet's log, the
// time of a start from the process itself and from CRI, restarts and phases from the API. The
// daemon's own counters only confirm that a scenario took the intended way. The daemon has the
// token of a service account and the shipped rights, which must suffice.
//
// Figures that depend on the machine are judged as a ratio to a measurement of the same run. What
// other work took of the machine is measured as well. A try that cannot be judged is repeated and
// reported, see repeated. herdjudge_test.go says how herds are judged.
//
// The files of the scenarios have the build tag e2e; `make e2e` runs them. The long ones also have
// the tag full; `make e2e-full` runs all. README.md lists them.
package e2e

//go:generate go run ../cmd/scenarios -folder .
