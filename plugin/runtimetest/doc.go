// Package runtimetest is a container runtime in this process. It speaks the real NRI protocol over a real unix
// socket, and its pods are ordinary processes. The tests of the plugin run against it.
//
// As far as a plugin can see, it behaves like containerd v2.4.2 with NRI v0.12.0. The rest of this comment is that
// contract. It was read from containerd's internal/nri, internal/cri/nri and internal/cri/server and from NRI's
// pkg/adaptation. The tests of this package check that the simulation keeps it.
//
// # Locks
//
// Every call to the plugins holds two locks: a lock of containerd's NRI layer and, inside it, a lock of the
// adaptation. Both are global, so a plugin that waits inside a handler blocks every pod, container and exit of the
// node. No lock is held between two events, so other requests' events may come between any two of the events listed
// below.
//
// A third lock keeps plugins from synchronising while a request is under way. Each request takes it shared, from just
// before its first event. A [Container.Start] takes it only after the hooks have ended. A plugin takes it
// exclusively, from before Synchronize until it gets events. While the plugin waits for the lock, no request can take
// it. A create that is undone has already released it.
//
// containerd takes that lock twice when it removes a sandbox that still has containers. This is a deadlock if a
// plugin connects in between. It is the only behaviour that this package does not repeat.
//
// # The events and their order
//
// containerd remembers a state for each sandbox and container. By that memory, it sends Stop only to what is created
// or running, and Remove only to what it remembers.
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
// The events that the plugin does not subscribe to are left out: containerd also sends PostCreateContainer, and
// StartContainer between the hooks and the process. The labels and arguments of containers are left out, too.
//
// If a plugin returns an error from a Post, Stop or Remove event, the error is logged and has no other effect. A stop
// does not touch a container in state CREATED, even if its hook waits: only its StopContainer event is sent. The
// state is UNKNOWN in CreateContainer, and in every message about an exited container except that of its exit.
//
// A request whose context has ended still sends its events, but does not wait for the answers, and does not hold the
// locks meanwhile. So after a cancelled RunPodSandbox, its Stop and Remove events can reach a plugin that is still in
// its RunPodSandbox handler.
//
// # Plugins
//
// A plugin that does not answer within the request timeout (2 s) is disconnected, and the request continues as if the
// plugin had agreed. Synchronize lists all sandboxes in the store, and the containers that are created or running.
//
// When containerd restarts, pods and containers stay, but its memory of states is empty. Only containers get their
// states back, when a plugin synchronises. So StopPodSandbox and RemovePodSandbox are never sent for a sandbox that
// is older than the containerd process. [Runtime.Kill] and [Runtime.Start] repeat that.
//
// # Hooks and processes
//
// OCI createRuntime hooks of the adjustment run within [Container.Start], one after the other. Each hook is the child
// of a process that plays runc. Its path is its name, its standard input is the OCI state without the pid, and its
// environment is only that of the hook. When the context of the request ends, or containerd is killed, that runc is
// killed, and the hook stays behind as an orphan. A hook that fails fails the start.
//
// runc makes the container's process before the hooks; here it starts after them. It is a process group. When its
// first process ends, the rest of the group is killed. There are no namespaces, cgroups, images, networks or pause
// processes, and a sandbox has no pid. Adjustments other than createRuntime hooks without a timeout fail the create,
// so that no request of a plugin is silently left out.
//
// Hooks are started through /bin/sh. The package is for Linux.
//
// # In memory
//
// With [Options.InMemory], a runtime fits into a bubble of testing/synctest, whose clock goes on only while every
// goroutine waits for another one of the bubble: NRI's protocol goes over pipes, containers and hooks are functions, and
// all locks are ones at which the clock can go on. The contract above holds, but for these: there is one plugin at a
// time, and RejectHooks is left out. Synchronize splits its messages as NRI does, and ends the runtime where NRI would.
// A [Kubelet] runs pods on it.
package runtimetest
