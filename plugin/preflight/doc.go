// Package preflight looks whether a node, and the rights at the API server, have what
// the daemon needs, before it runs or beside it. It changes nothing, and each finding
// says what to do.
package preflight
