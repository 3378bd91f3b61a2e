// Package nodesim simulates a node that starts a herd of pods: the plant that the
// limiter controls, for tests.
//
// It is a fluid model. The CPUs are shared evenly among what is runnable, a
// container's CPU limit caps its share, the disk is shared by those that read.
// Between two events all rates are constant, so that the node moves from event to
// event and is exact. Pressure is what the kernel would account: see pressure.go.
// What the model leaves out (weights of cgroups, the cost of switching) is within
// the 15 % to which it reproduces herds that were recorded on a real node: see
// testdata and the test.
//
// [Run] sleeps from event to event. It is meant to be called in a bubble of
// testing/synctest, where that takes no time.
package nodesim
