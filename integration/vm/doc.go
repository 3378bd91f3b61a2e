// Package vm runs a node like the users': a Debian guest with its own kernel, systemd, cgroup v2,
// journald and logind, in QEMU without hardware virtualization. containerd, the kubelet and the
// daemon are units of the guest. The API server is the lab's, on the host.
//
// QEMU runs in the lab's network namespace: its user-mode network reaches only the API server. The
// scenarios have the build tag vm, and reach the guest by SSH through a forwarded port. A run
// leaves only the guest's operating system, without the lab's parts, in the build cache.
package vm
