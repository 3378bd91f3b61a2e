// Package preflight checks whether a node has what the daemon needs, and whether the daemon has its rights at the API
// server. A daemon may run meanwhile. The checks change nothing, and each finding that is not OK says what to do.
package preflight
