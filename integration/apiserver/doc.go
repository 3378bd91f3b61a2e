// Package apiserver holds the tests that need a real API server but no node: what the shipped CRDs
// accept and refuse, and what the daemon takes to read many pods. They run in one process, with their
// own etcd and kube-apiserver.
//
// The files of these tests have the build tag e2e; `make api` runs them. The test that compares package rules with the API
// server's library needs neither, and is one of the unit tests. With the tag full, `make
// e2e-lab` runs the long ones, too.
package apiserver
