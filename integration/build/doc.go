// Package build makes the lab's programs (containerd, runc, CNI plugins, etcd,
// Kubernetes) from their Go modules, once, into a cache.
//
// Every component is built as its own main module: its upstream go.mod and
// go.sum decide what it is linked with, so the lab runs what its authors
// released and components never bend each other's dependencies. The module's
// own checksum stands in versions.txt beside its version.
//
// A finished component is a folder of the cache whose name holds its version
// and a hash of everything that went into it (recipe, checksum, Go release,
// architecture). It appears by a rename, so it is either whole or absent.
package build
