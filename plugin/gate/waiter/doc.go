// Package waiter waits at the daemon's socket until the start of a pod is decided. The
// programs pacemaker-gate (for a container) and pacemaker-cni (for a sandbox) use it. The
// protocol stands in package wire.
//
// Hundreds of these processes may wait on one node, and every package that they import
// takes memory. So this package uses system calls and little else.
package waiter
