// Package nri keeps the daemon registered with the runtime as an NRI plugin.
//
// [Connection] connects, registers, serves and connects again; [PreRegistered] is the connection of a
// daemon that the runtime itself has started. What the runtime asks and tells goes to a [Handler],
// one call for each message; a panic of the handler is caught there and lets the pod go on. The
// package knows nothing of pacing.
//
// containerd holds two global locks while it calls a plugin, so a Handler must be quick, and a
// connection whose answers are late is given up for a while: see weakness.go. Registration takes
// the same locks, so it waits while a container of the node is being stopped: see stopwait.go.
package nri
