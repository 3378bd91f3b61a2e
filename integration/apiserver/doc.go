// Package apiserver holds the tests that need a real API server and no node: what
// the shipped CRDs accept and refuse. They run in one process, against an etcd and a
// kube-apiserver of their own.
//
// The files of the tests have the build tag e2e; `make api` runs them.
package apiserver
