// Package pods keeps the book of the node's pods: what the runtime has told of each, its sandboxes,
// containers and their exits.
//
// A [Book] has no lock, because its owner decides by it and by the limiter in one step: the
// caller locks. It knows no limiter, reads no clock and no file, and gives values, which may be
// kept after the lock is let go. What kubelet and the API server say of a pod is podwatch's; where
// both are needed, a method takes a podwatch.Pod.
package pods
