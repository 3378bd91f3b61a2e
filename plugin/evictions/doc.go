// Package evictions tells which pods kubelet itself evicts, because their node runs short of
// memory, disk or process IDs, before kubelet has ended them.
//
// kubelet writes an event on the pod (Evicted), asks for the end of the pod, and writes its
// status when that has come. For a pod whose container waits to start, that is only when
// the wait is over, and meanwhile kubelet evicts no other: nothing but the event tells of
// it beforehand.
//
// A watch of events for ever is out of the question. API servers keep no cache for events,
// so that every watch of them is one of etcd, and thousands of nodes would have one each. So
// events are watched only while kubelet says that the node runs short of something, and only
// in the namespaces of pods that wait then, with all else filtered out by the API server.
// kubelet evicts up to 10 s before it says so on its Node: events that are there already
// when a watch begins count as well. What has no such condition is not seen: preemption by a
// critical pod, and the eviction of a single pod that exceeds its own limit of local storage.
package evictions
