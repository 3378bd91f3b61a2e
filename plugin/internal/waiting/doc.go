// Package waiting decides how a pod that may not start yet has to wait, and makes it wait.
//
// The runtime asks twice. When it makes a sandbox, [Chooser.Sandbox] lets the pod have it or refuses it. A pod that may
// not fail gets its sandbox only together with a slot, as long as sandboxes may be refused. When the runtime makes a
// container, [Chooser.Container] lets the start continue, or the container waits in the first of these
// ways that does not bar it:
//
//	way       for a container                                        what happens
//	gate      if a hook may wait (see gate.go)                       if the pod gets a reservation, the container gets a
//	                                                                 hook, which waits and asks the daemon
//	                                                                 (gatewait.go); otherwise it is refused
//	hold      if no hook may wait, it is the first in the queue,     the handler waits for a fraction of a second,
//	          and its limit does not hold it for longer              then refuses it if its turn has not come
//	refusal   always                                                 it is refused, and kubelet tries again
//
// Where the daemon installs the waiting room ([Room]), pods wait there before their sandbox exists, and the runtime
// asks when their turn is near. Pods on the host's network, and pods that come while the room is shut, are still
// refused.
//
// The first two ways are asked for in [Chooser.Container], the processes that wait are answered in [Chooser.Wait]: another
// way is a case in each.
//
// refusal.go also decides whether a pod is refused at the sandbox or at the container: refusals cost CPU time, and some
// versions of containerd do not clean up refused sandboxes.
package waiting
