// Package adaptive finds how many pods may start at a time, from what the node
// shows while they start.
//
// A [Controller] is fed with a [Sample] each time the node was measured and
// answers with a limit. It reads no clock, starts no goroutine and takes no lock.
package adaptive
