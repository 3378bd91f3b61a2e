// The runtime need not look for CPU limits in cgroups: the hook hardly computes.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Pacemaker-gate is the OCI createRuntime hook in which a container waits until
// the pod-pacemaker daemon of its node lets its process start.
//
// It exits 0 when the process may start, and 1 when nothing may: the daemon said
// so, or the runtime that ran the hook is gone. A signal ends it as it ends any
// program, and the runtime takes that like exit code 1. Whatever else happens,
// also bad arguments or no daemon, it exits 0 with a line on standard error: a
// fault in pacing never keeps a pod from starting.
//
// Hundreds of these may wait on one node, so it is built from system calls and
// little else; see package waiter for what it does to stay small.
package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/waiter"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// version is set by the linker.
var version = "dev"

const usage = "usage: pacemaker-gate --socket PATH --pod UID --container ID [--name NAMESPACE/NAME]\n" +
	"                      [--since UNIX_US] [--deadline UNIX_MS] [--leave-at UNIX_MS] [--made UNIX_MS]\n" +
	"An OCI createRuntime hook: the container runtime runs it, the pod-pacemaker daemon gives it its arguments.\n"

const (
	stdout    = 1
	stderr    = 2
	sayMillis = 100

	exitStart   = 0 // the process starts
	exitNothing = 1 // nothing starts
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(argv []string) int {
	if len(argv) == 0 {
		say(stderr, usage)
		return exitStart
	}
	switch argv[0] {
	case "--help", "-h":
		say(stdout, usage)
		return exitStart
	case "--version":
		say(stdout, "pacemaker-gate "+version+"\n")
		return exitStart
	}
	args, err := wire.ParseArgs(argv)
	if err != nil {
		return startUnpaced("wrong arguments: " + err.Error())
	}
	return wait(args, waiter.BecomeLean())
}

// wait waits until the start is decided, and gives the exit code.
func wait(args wire.Args, parent int) int {
	now := time.Now()
	w := waiter.New(waiter.Start{
		Socket: args.Socket, Deadline: deadline(args, now), LeaveAt: args.LeaveAt, Parent: parent,
		Hello: wire.Hello{PodUID: args.PodUID, ContainerID: args.ContainerID, Name: args.Name, Since: args.Since},
	}, now)
	making := creation{id: args.ContainerID, stdin: int32(unix.Stdin)}
	w.Input, w.OnInput = making.stdin, func() int32 { making.read(); return making.stdin }
	switch o := w.Wait(); {
	case o.Unpaced:
		return startUnpaced(o.Reason)
	case o.Starts:
		return exitStart
	default:
		if o.Orphaned { // the container is not made any more
			making.remove()
		}
		// It is read by the user: the kubelet puts the line into the pod's events.
		say(stderr, "pod-pacemaker: nothing started: "+o.Reason+"\n")
		return exitNothing
	}
}

func startUnpaced(why string) int {
	say(stderr, "pod-pacemaker: starts unpaced: "+why+"\n")
	return exitStart
}

// say writes a line, unless no reader takes it: a full pipe must not hold a start.
func say(fd int32, line string) {
	ready := []unix.PollFd{{Fd: fd, Events: unix.POLLOUT}}
	if n, err := unix.Poll(ready, sayMillis); n == 1 && err == nil {
		_, _ = unix.Write(int(fd), []byte(line)) // there is nowhere left to say that this failed
	}
}
