// Package lab runs real parts on this machine: a throw-away containerd, or a whole one-node
// Kubernetes cluster, built from Go modules, with pods in real containers.
//
// It needs root, Go and gcc, and nothing installed. A run has its own folder, cgroup, mount
// namespace and network namespace. Everything of the run is removed after Stop, after the end of
// the process that started it, however that ends, and at the latest with the next start or Sweep.
package lab
