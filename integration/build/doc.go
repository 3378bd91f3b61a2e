// Package build builds the lab's programs (containerd, runc, CNI plugins, etcd, Kubernetes) from
// their Go modules, once, into a cache.
//
// Every component is built as its own main module: its upstream go.mod and go.sum decide what it is
// linked with. So the lab runs what its authors released, and components do not change each other's
// dependencies. versions.txt has each module's version and checksum.
//
// A finished component is a folder of the cache. Its name holds its version and a hash of all
// ingredients (recipe, checksum, Go release, architecture). The folder appears by a rename, so it
// is either whole or absent.
package build
