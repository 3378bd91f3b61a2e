// Package lab puts real parts together on this machine: a throw-away
// containerd, or a whole one-node Kubernetes cluster, built from Go modules,
// with pods that run in real containers.
//
// It needs root, Go and gcc, and nothing installed. Everything of a run lives in
// one folder, in its own cgroup, mount namespace and network namespace, and is
// gone after Stop, after the end of the process that started it (in whatever
// way), and at the latest with the next start or Sweep.
package lab
