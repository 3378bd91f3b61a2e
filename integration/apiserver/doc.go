// Package apiserver holds the tests that need a real API server but no node: what the shipped CRDs
// accept and refuse. They run in one process, with their own etcd and kube-apiserver.
//
// The files of the tests have the build tag e2e; `make api` runs them.
package apiserver
