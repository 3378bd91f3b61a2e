// Package nodesim simulates a node that starts a herd of pods. Tests use it as the plant that the limiter controls.
//
// It is a fluid model. The runnable pods share the CPUs evenly, a container's CPU limit caps its share, and the
// reading pods share the disk. All rates are constant between two events, so the node moves from event to event and
// is exact. Pressure is what the kernel would account: see pressure.go. The model leaves out the weights of cgroups
// and the cost of switching. This is within the 15 % to which it reproduces herds that were recorded on a real node:
// see testdata and the test.
//
// [Run] sleeps from event to event. Call it in a bubble of testing/synctest, where that takes no time.
package nodesim
