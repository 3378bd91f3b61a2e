// Package plugin is the daemon: a containerd NRI plugin that paces the pods that
// start on its node. It wires rooms, each a package that can be read alone; imports
// run down this list only, which the linter holds:
//
//	plugin             a file for each concern of [Daemon.Run]; handlers.go sends the runtime's events to the rooms
//	internal/waiting   how a pod waits that may not start now: waiting room, gate, hold, refusal
//	internal/starts    which start goes on, and when it is over: sole user of the limiter's tickets; the loop
//	internal/pods      the book of pods: what the runtime has told
//	internal/observe   log, metrics, Kubernetes events
//	internal/turns     when those that wait have their turn
//	internal/usage     what pods use of the node
//	internal/learning  what starts took, and what the next is expected to take; knows no other room
//	internal/cni       installs the waiting room on the node; knows no other room
//	internal/nri       the connection to the runtime; knows no other room
//
// One pod, from its sandbox to the end of its slot. Each line is a call into the next room:
//
//  1. Where the waiting room is installed ([Options.CNI]), the runtime runs pacemaker-cni before the
//     sandbox exists, which asks at gate.sock: waiting.Room.Wait has the pod wait until its turn is near.
//     The runtime makes a sandbox: nri calls handler.RunPodSandbox, that waiting.Chooser.Sandbox.
//  2. starts.RuntimeEvents.Sandbox writes it into the book, has the pod join the queue, and asks for a
//     reservation. Without one, waiting.Refusals refuses the sandbox, and kubelet comes back.
//  3. The images are pulled. The runtime makes a container: waiting.Chooser.Container asks
//     starts.RuntimeEvents.Container what it starts. A start of its own asks for a slot.
//  4. There is none: the first way of waiting's table takes the container. The gate gives it a hook.
//  5. runc runs the hook, which asks at gate.sock: waiting.Backend.Wait finds its ticket by
//     starts.Starts.Attend and waits for the decision, for the valve, or for its deadline.
//  6. A slot ends. The limiter admits the ticket; the hook gets its go and ends; runc starts the process.
//  7. nri tells: starts.RuntimeEvents.ContainerStarted notes in the book what runs.
//  8. starts.Starts.Run goes round and hands the admission to observe.Observer.Happened.
//  9. kubelet reports the pod ready: podwatch calls starts.Starts.PodChanged, which ends the ticket
//     with the reason Ready. Where kubelet's report is missing, the loop judges by what usage measures.
//     What the start took is learned.
//  10. The slot is free, and the next ticket is admitted. What is left of the pod goes with its
//     sandbox: starts.RuntimeEvents.SandboxRemoved.
//
// containerd holds two global locks while it calls a plugin. Nothing in a handler
// waits, therefore, except for a hold of a fraction of a second that is bounded
// by a budget over all pods. Whatever fails, fails open: the pod starts, and a
// log line and a metric say so.
//
// Locks on the way of a start: that of the book, then the matcher of policies, then the limiter.
// Under the first and the last is no I/O, and no call into another package but the next of these;
// the matcher, when the policies change, tells the log, the claims and the pod watch of it under
// its own. Package starts says more, and tests it.
package plugin

//go:generate go run ./internal/cmd/imports
