// Package waiter is how a process waits at the daemon's socket until the start of its pod
// is decided: pacemaker-gate for a container, pacemaker-cni for a sandbox. The lines that
// it and the daemon exchange are those of package wire.
//
// Hundreds of these may wait on one node, so it is built from system calls and little
// else: what a waiting process imports is mapped into its memory.
package waiter
