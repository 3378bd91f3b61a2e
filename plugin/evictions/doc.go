// Package evictions tells which pods kubelet itself takes down before it has ended them: those
// that it evicts, because their node runs short of memory, disk or process IDs, and those
// that it preempts, because a critical pod that is bound to the node does not fit beside
// them. (The scheduler preempts as well, but deletes pods for it, which the pod watch sees.)
//
// kubelet writes an event on the pod (Evicted, Preempting), asks for the end of the pod, and
// writes its status when that has come. For a pod whose container waits to start, that is
// only when the wait is over. Meanwhile kubelet evicts no other, or, when it preempts,
// accepts no pod and follows no change of one: nothing but the event tells of it beforehand.
//
// A watch of events for ever is out of the question. API servers keep no cache for events,
// so that every watch of them is one of etcd, and thousands of nodes would have one each. So
// events are watched only while there is need to, and only in the namespaces of pods that
// wait then, with all else filtered out by the API server. Each need has watches of its own,
// since no field selector asks for one of two reasons, and one that asks for neither brings
// what every kubelet has to say of a herd:
//
//   - Evicted, while kubelet says that the node runs short of something. It evicts up to 10 s
//     before it says so on its Node.
//   - Preempting, once kubelet has not accepted a critical pod for a second, and for a while
//     after that. It decides within milliseconds on a pod that it need not preempt for, so
//     that critical pods which start on all nodes at once cause no watches.
//
// Events that are there already when a watch begins count as well.
//
// What comes without these signs is not seen, unless by a watch that is there for another
// reason: preemption for a static pod, which kubelet shows the API server only once it has
// accepted it, for a critical pod that a restarted kubelet accepts anew, or for the resize
// of one; and the eviction of a single pod that exceeds its own limit of local storage.
package evictions
