// Package nri keeps the daemon registered with the runtime as an NRI plugin.
//
// [Connection] connects, registers, serves the runtime, and connects again when that ends. Each call of the runtime goes
// to a [Handler]. A panic of the handler is caught here, and the pod starts. The package knows nothing of pacing.
//
// containerd holds two global locks while it calls a plugin, so a Handler must be quick. A connection whose answers come
// too late is given up for a while: see weakness.go. Registration needs the same locks, so the daemon does not register
// while a container of the node is being stopped: see stopwait.go. Nor does it register where the runtime could end in
// the attempt to list its pods (listing.go), nor soon after it did (ends.go).
package nri
