// Package waiting chooses how a pod waits that may not start now, and has it wait.
//
// The runtime asks twice. For a sandbox, the pod is let in or refused ([Chooser.Sandbox]). For a
// container ([Chooser.Container]), the start goes on, or it waits in the first way of this table
// that is open to it:
//
//	way       is open to a container                                 then it
//	gate      where a hook may wait, see gate.go, and with a         gets a hook, which waits and asks (gatewait.go)
//	          reservation
//	hold      where no hook may wait, if it is the first in line     waits in the handler for a fraction of a second, and is
//	          and no limit may hold it for hours                     refused if its turn does not come
//	refusal   always                                                 is refused: kubelet comes back
//
// Before both, where the daemon installs it, pods wait in the waiting room, before their sandbox exists
// ([Room]): then neither point has to refuse them.
//
// Each way is one file. What is refused, and at which of the two points, says refusal.go: refusals
// cost CPU time, and some containerds do not bear them at the sandbox.
package waiting
