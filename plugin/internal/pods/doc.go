// Package pods keeps the book of the node's pods: what the runtime has reported of each, its sandboxes,
// containers and their exits.
//
// A [Book] has no lock, because its owner decides by the book and by the limiter in one step: the caller locks.
// The book knows no limiter, and reads no clock and no file. It returns values, which the caller may keep after
// it unlocks. The reports of kubelet are in package podwatch; a method that needs them takes a podwatch.Pod.
package pods
