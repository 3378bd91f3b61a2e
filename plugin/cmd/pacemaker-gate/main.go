// The Go runtime need not read CPU limits from cgroups: the hook hardly uses the CPU.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Pacemaker-gate is the OCI createRuntime hook in which a container waits until
// the pod-pacemaker daemon of its node lets its process start.
//
// It exits 0 when the process may start, and 1 when it must not: the daemon decided
// so, or the runtime that ran the hook is gone. A signal ends it as it ends any
// program; the runtime treats that like exit code 1. In any other case, such as bad
// arguments or no daemon, it exits 0 with a line on standard error: a fault in
// pacing never keeps a pod from starting.
//
// Hundreds of these processes may wait on one node, so the program uses system calls
// and little else. Package waiter describes how it stays small.
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

const usage = "usage: pacemaker-gate SOCKET 'wait 1 pod=UID container=ID [name=NAMESPACE/NAME] [since=UNIX_US]\n" +
	"                      deadline=UNIX_US' 'turn LEAVE_AT_UNIX_US PLACE [PACE_MS]' CGROUP\n" +
	"An OCI createRuntime hook: the container runtime runs it, the pod-pacemaker daemon gives it its arguments.\n"

const (
	// writeMillis is how long a write may wait for a reader.
	writeMillis = 100

	exitStart   = 0 // the process starts
	exitNothing = 1 // nothing starts

	// longestWait is the longest wait of a hook. It counts if the wall clock was set back since the deadline was set.
	longestWait = time.Hour
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(argv []string) int {
	if len(argv) == 0 {
		write(unix.Stderr, usage)
		return exitStart
	}
	switch argv[0] {
	case "--help", "-h":
		write(unix.Stdout, usage)
		return exitStart
	case "--version":
		write(unix.Stdout, "pacemaker-gate "+version+"\n")
		return exitStart
	}
	socket, hello, forecast, cgroup, err := wire.ParseArgv(argv)
	if err != nil {
		return startUnpaced("wrong arguments: " + err.Error())
	}
	return wait(socket, hello, forecast, cgroup, waiter.BecomeLean())
}

// wait waits until the start is decided, and returns the exit code.
func wait(socket string, hello wire.Hello, forecast wire.Answer, cgroup string, parent int) int {
	now := time.Now()
	w := waiter.New(waiter.Start{
		Socket: socket, Hello: hello, Deadline: deadline(hello.Deadline, now), Forecast: forecast, Parent: parent,
	}, now)
	switch o := w.Wait(); {
	case o.Unpaced:
		return startUnpaced(o.Reason)
	case o.Starts:
		return exitStart
	default:
		if o.Orphaned {
			removeCgroup(cgroupRoot, cgroup)
		}
		// kubelet puts this line into the events of the pod.
		write(unix.Stderr, "pod-pacemaker: nothing started: "+o.Reason+"\n")
		return exitNothing
	}
}

func startUnpaced(why string) int {
	write(unix.Stderr, "pod-pacemaker: starts unpaced: "+why+"\n")
	return exitStart
}

// deadline returns the given deadline with a monotonic clock reading.
func deadline(given, now time.Time) time.Time { return now.Add(min(given.Sub(now), longestWait)) }

// write writes a line, unless nobody reads it: a full pipe must not delay a start.
func write(fd int, line string) {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	if n, err := unix.Poll(ready, writeMillis); n == 1 && err == nil {
		_, _ = unix.Write(fd, []byte(line)) // an error cannot be reported anywhere
	}
}
