// Package herdpage serves the page of a node's daemon to a user who may list pods, on the user's machine. It adds
// a row for each pod of the node: how long it waited, how long its start took, and since when it is ready.
// The daemon names no pod at its HTTP address, so the rows come from the status of the pods.
package herdpage
