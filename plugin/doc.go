// Package plugin is the daemon: a containerd NRI plugin that paces the pods that start on its node. It connects the
// packages below. Each can be read alone. A package imports only packages further down this list, which the
// linter checks:
//
//	plugin                  one file for each part of [Daemon.Run]; wire.go makes what it runs, handlers.go passes the runtime's calls on
//	internal/waiting        how a pod waits that may not start now: waiting room, gate, hold, refusal
//	internal/starts         what is known of each pod, which start is admitted, and when it is over; it owns the limiter
//	internal/signals        how busy the node is, for the limits on that
//	internal/observe        log, metrics, Kubernetes events
//	internal/usage          what pods use of the node
//	internal/learning       what starts took, and what the next start is expected to take; imports only podwatch and wholefile
//	internal/uninstall      removes the daemon's files from the host; imports only cni, gate/wire, rundir and wholefile
//	internal/cni            installs the waiting room on the node; imports only wholefile
//	internal/nri            the connection to the runtime; imports only wholefile
//	internal/nodecondition  whether kubelet shuts the node down, and whether the node is under pressure; the same
//	internal/kubelet        how long kubelet's configuration lets a container wait; the same
//	internal/settings       the settings of the limiter that follow from a PacemakerConfig; imports only cores
//	internal/cores          the CPUs that pods can use; imports only cgroup
//	internal/startuptaint   removes the startup taint from the node
//	metricsproxy            serves the metrics to other hosts, in a process of its own
//	admin                   what the daemon reports of its state, and to whom it serves that
//	gate                    where hooks wait for their turn; gate/wire is the protocol, gate/waiter the side of the hook
//	policies                which pods are in which group of a StartPolicy; imports none of the others
//	leases                  slots of the whole cluster; the same
//	report                  writes how pods start to the API server; the same
//	podwatch                the pods of this node in the API server; the same
//	journal                 sends the log to journald
//	logqueue                keeps a slow log from blocking; imports none of the others
//	rundir                  the daemon's unix sockets, and the lock of their folder; the same
//	cgroup                  what containers have used; the same
//	wholefile               replaces files atomically; the same
//
// The commands, and what only they use (preflight, herdpage), stand above.
//
// A start takes a slot when it is admitted, and gives it back when it is over. A reservation is the leave to have images
// pulled and to wait in the gate; it takes no slot. The gate is a hook of the container that waits for the daemon. The
// waiting room is a CNI plugin that waits before the sandbox exists. A slot beyond the limit is lent while no start makes
// progress.
//
// This is one pod, from its sandbox to the end of its slot:
//
//  1. If the waiting room is installed, the runtime runs pacemaker-cni before it creates the sandbox. [waiting.Chooser.Wait]
//     calls the method wait of [waiting.Room]. It adds the pod to the queue ([starts.Starts.EnterRoom]) and blocks until its
//     turn is near, or, if it cannot wait in the gate, until it has its slot.
//  2. The runtime creates the sandbox. [handler.RunPodSandbox] calls [waiting.Chooser.Sandbox], and that
//     [starts.Starts.Sandbox]: the pod joins the queue. Without a reservation, [waiting.Refusals] may refuse it. A pod that
//     nobody starts again after a failed container cannot wait in the gate, so it gets its sandbox only with a slot.
//  3. The runtime creates a container. [waiting.Chooser.Container] asks [starts.Starts.Container] whether it may
//     start now. If it begins a start, [throttle.Ticket.TryStart] asks for a slot.
//  4. A limit holds it. If a hook may wait for it, the same decision asks for a reservation, [throttle.Ticket.ReserveRefused],
//     and the container gets a hook or is refused.
//  5. runc runs the hook, which asks at gate.sock. [waiting.Chooser.Wait] calls the method wait of [waiting.Gate]. It waits
//     until the ticket ([starts.Starts.EnterGate]) is admitted, all waits end ([starts.Ends]), or the deadline comes.
//  6. Another slot ends. The limiter admits the ticket, the hook is told to go, and runc starts the process.
//     [waiting.Chooser.ContainerStarted] checks that the hook has asked, [starts.Starts.ContainerStarted] notes what
//     runs, and the loop [starts.Starts.Run] passes the admission to [observe.Observer.Report]. The pod's further
//     containers continue this start: after step 3 they start without asking for a slot. The end of an init container
//     ends nothing. But the app of a start whose slot is still lent, or that is stuck, is a start of its own (step 3).
//  7. kubelet reports the pod ready. [Daemon.podChanged] calls [starts.Starts.PodChanged], which ends the ticket. If the
//     report is missing, the loop decides by what usage measures. What the start took is learned.
//  8. The slot is free, and the next ticket is admitted. [starts.Starts.SandboxRemoved] forgets the pod if nothing is
//     left of it, and [starts.Starts.PodChanged] in any case, once it is deleted from the API server.
//
// This is the mode Enforce. In Shadow, pods start at once, while their tickets wait and take slots as if the pods had. In
// Disabled, there is no limit. All waits end ([starts.Ends]) with the mode, when the node shuts down or, in the gate, is
// short of memory, disk or process IDs. While pods wait for others, by startAfter, the loop pauses all starts
// ([throttle.Pause]).
//
// If the daemon dies while hooks wait, each asks again until another daemon answers, and leaves by itself when its last
// forecast turn is over. The next daemon finds what exists ([starts.Starts.Synchronize]), and freezes admissions
// ([starts.Starts.Freeze]) until the hooks have asked again, each with the time at which its pod joined the queue.
//
// After a reboot, a daemon that begins before kubelet (a systemd unit) is listed only dead sandboxes, so it knows no start.
// One of the DaemonSet comes up among the other pods: those that run by then started unpaced, and are adopted; those that
// have only a sandbox join at their container. If the waiting room is installed, admissions are frozen for a second, until
// those that wait there have asked. Until the API server answers, the configuration that was in force last is.
// The pods keep their UIDs and come all at once, each with a new sandbox and as a first start. Until kubelet reports
// again, its report is about the containers from before, and says nothing of this start. But kubelet has these in its
// records, and counts the refusal of a container as a crash ([starts.HookTerms]). What was ready before the boot does not
// count for startAfter.
//
// containerd holds two global locks while it calls a plugin. So no handler waits, except for a hold of a fraction of a
// second, which a budget over all pods bounds. After a failure of the daemon the pod starts, and a log line and a metric
// report that.
//
// One lock lies on the way of a start: that of [starts.Starts], which guards the limiter and what is known of the
// pods. Under it there is no I/O, no log and no wait: only what computes is called. Packages starts and throttle say more,
// and test it. Every mutex is a leaf: while it is held, no other one is taken, nothing is logged, read, written or
// waited for, and no other package is called. TestEveryMutexIsALeaf holds that, and lists what is excepted.
package plugin

import (
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

//go:generate go run -C ../integration ./cmd/imports

// These are the links above. With the imports an editor can follow them, and what is renamed does not compile here.
var _ = []any{
	handler.RunPodSandbox, (*Daemon).podChanged,
	(*waiting.Chooser).Wait, (*waiting.Chooser).Sandbox, (*waiting.Chooser).Container, (*waiting.Refusals)(nil), (*waiting.Chooser).ContainerStarted,
	(*waiting.Room)(nil), (*waiting.Gate)(nil),
	(*starts.Starts).EnterRoom, (*starts.Starts).EnterGate, (*starts.Starts).Run, (*starts.Starts).PodChanged, starts.Ends{}, starts.HookTerms{},
	(*starts.Starts).Sandbox, (*starts.Starts).Container, (*starts.Starts).ContainerStarted, (*starts.Starts).SandboxRemoved,
	(*starts.Starts).Synchronize, (*starts.Starts).Freeze,
	(*observe.Observer).Report, (*throttle.Ticket).TryStart, (*throttle.Ticket).ReserveRefused,
}
