// Package vm runs a node as users have it: a Debian guest with its own kernel,
// systemd, cgroup v2, journald and logind, in QEMU without help of the hardware.
// containerd, the kubelet and the daemon are units of the guest; the API server
// is the lab's, on the host.
//
// QEMU runs in the lab's network namespace: its user-mode network reaches the API
// server, and nothing else. The scenarios, which have the build tag vm, reach the
// guest by SSH through a forwarded port. All that a run leaves on the machine is
// the guest's operating system, without the lab's parts, in the build cache.
package vm
