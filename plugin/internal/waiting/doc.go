// Package waiting chooses how a pod waits that may not start now, and has it wait.
//
// The runtime asks twice. For a sandbox, the pod is let in or refused ([Chooser.Sandbox]). For a
// container ([Chooser.Container]), the start goes on, or the first way of this table takes it
// that does not bar it:
//
//	way       bars a container                                               then it
//	gate      while no hook may wait there: see gate.go                      gets a hook, which waits and asks (gatewait.go); without
//	                                                                         a reservation the next way takes it
//	hold      that could have used the gate, that is not the first in line,  waits in the handler for a fraction of a second; the next
//	          or whose limit may hold it for hours                           way takes it if its turn does not come
//	refusal   never                                                          is refused: kubelet comes back
//
// Before both, where the daemon installs it, pods wait in the waiting room, before their sandbox exists
// ([Room]): then neither point has to refuse them.
//
// A [Way] is one file. What is refused, and at which of the two points, says refusal.go: refusals
// cost CPU time, and some containerds do not bear them at the sandbox.
package waiting
