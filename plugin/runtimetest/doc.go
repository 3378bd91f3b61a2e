// Package runtimetest is a container runtime in this process: the real NRI
// protocol over a real unix socket, pods that are ordinary processes. Tests of
// the plugin and the demo without root run against it.
//
// It repeats what containerd v2.4.2 with NRI v0.12.0 does as far as a plugin
// can tell. What follows is that contract, read from containerd's internal/nri,
// internal/cri/nri and internal/cri/server and from NRI's pkg/adaptation; the
// tests of this package hold the simulation to it.
//
// # Locks
//
// Two locks are held through every call to the plugins: one of containerd's NRI
// layer and, inside it, one of the adaptation. Both are global, so a plugin that
// waits inside a handler makes every pod, container and exit of the node wait.
// No lock is held between two events, so events of others may come between any
// two of those listed below.
//
// A third lock keeps plugins from synchronising while a request is under way.
// Each request takes it shared, from just before its first event: a
// [Container.Start] only after the hooks have ended. A plugin takes it alone from
// before Synchronize until it gets events, and while it waits for that no
// request can take it. An undone create has already let go of it.
//
// containerd takes that lock twice when it removes a sandbox that still has
// containers, which is a deadlock if a plugin connects in between. This is the one
// thing not repeated here.
//
// # Which events come, in which order
//
// containerd remembers a state for each sandbox and container, sends Stop only to
// what is created or running by that memory, and Remove only to what it has in memory.
//
//	RunPodSandbox, accepted   RunPodSandbox
//	RunPodSandbox, refused    RunPodSandbox, StopPodSandbox, RemovePodSandbox; the sandbox was never in the store
//	CreateContainer           CreateContainer
//	CreateContainer, refused  CreateContainer, StopContainer, RemoveContainer, in state UNKNOWN
//	StartContainer            hooks (no lock, no event), process starts, PostStartContainer
//	StartContainer, hook or   no event at all: the container is Exited, code 128. Its
//	process fails             StopContainer comes when it is stopped or removed
//	container exits           StopContainer, state STOPPED, from a goroutine of its own: it can come before
//	                          PostStartContainer and after StopPodSandbox
//	StopContainer             the process is stopped first, then StopContainer; the exit may have sent it. The
//	                          one that comes first is the only one; from the request its state is UNKNOWN
//	RemoveContainer           killed if it runs; then, under one hold of the lock, StopContainer if it is
//	                          still due, and RemoveContainer. Refused while the container is starting
//	StopPodSandbox            containers that run are killed, without events but those of their exits; StopPodSandbox
//	RemovePodSandbox          StopPodSandbox if it is still due, RemoveContainer of each container, RemovePodSandbox
//
// The events that the plugin does not ask for are left out: containerd also sends PostCreateContainer, and
// StartContainer between the hooks and the process. So are labels, arguments and environment of containers.
//
// Errors of plugins from the Post, Stop and Remove events are logged and have no
// other effect. A container in state CREATED, also one whose hook waits, is not
// touched by a stop, only its StopContainer event is sent. State is UNKNOWN in
// CreateContainer, and in every message about an exited container but that of its exit.
//
// A request whose context has ended still sends what is listed, but does not wait for
// the answers, and the locks are not held meanwhile: after a cancelled RunPodSandbox its Stop and
// Remove events can reach a plugin that is still in its RunPodSandbox handler.
//
// # Plugins
//
// A plugin that does not answer within the request timeout (2 s) is disconnected,
// and the request goes on as if it had agreed. Synchronize lists all sandboxes in the
// store, and the containers that are created or running.
//
// When containerd restarts, pods and containers stay and its memory of states is
// empty; only containers get theirs back, when a plugin synchronises. So
// StopPodSandbox and RemovePodSandbox are never sent for a sandbox that is older
// than the containerd process. [Runtime.Kill] and [Runtime.Start] repeat that.
//
// # Hooks and processes
//
// OCI createRuntime hooks of the adjustment run within [Container.Start], one after
// the other, each as the child of a process that plays runc, under its path as its name,
// with the OCI state on standard input, but for the pid, and the hook's environment only. When the context of the
// request ends, or containerd is killed, that runc is killed, and the hook stays behind as an orphan. A hook that fails
// fails the start.
//
// The container's process, which runc makes before the hooks, starts after them here. It is a process group. When its
// first process ends, the rest of the group
// is killed. There are no namespaces, cgroups, images, networks or pause processes; a
// sandbox has no pid. Adjustments other than createRuntime hooks without a time-out fail the create: nothing a
// plugin asks for is silently left out.
//
// Hooks are started through /bin/sh. The package is for Linux.
package runtimetest
