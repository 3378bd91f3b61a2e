// The runtime need not look for CPU limits in cgroups: the plugin hardly computes.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Pacemaker-cni is the chained CNI plugin in which a pod waits, before its sandbox exists,
// until the pod-pacemaker daemon of its node lets it come up: the waiting room.
//
// It touches no network. ADD waits, and then prints the result of the plugins before it
// unchanged; or fails, so that kubelet tries again, where the daemon says so, where the
// runtime that ran it is gone, and at once where anything in the folder of the CNI
// configurations changes: containerd, which holds a lock for as long as an ADD takes,
// waits for that lock then, and every pod of the node with it. Whatever else happens, also
// no daemon, it lets the pod go on: a fault in pacing never keeps a pod from starting.
// CHECK, DEL, GC and STATUS have nothing to do, and succeed.
//
// Hundreds of these may wait on one node; see package waiter. It reads the configuration itself:
// with containernetworking/cni's skel, encoding/json and net, a waiting process has a PSS of 3.6 MiB
// alone and 1.0 MiB each of twenty, for 2.0 and 0.6 MiB.
package main

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/waiter"
)

// version is set by the linker.
var version = "dev"

const usage = "pacemaker-cni is a chained CNI plugin: the container runtime runs it, and pod-pacemaker writes the\n" +
	"configuration that names it. It takes no arguments but --version and --help.\n"

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(argv []string) int {
	if len(argv) > 0 {
		text := usage
		if argv[0] == "--version" {
			text = "pacemaker-cni " + version + "\n"
		}
		write(unix.Stdout, text)
		return 0
	}
	env := environment(unix.Environ())
	switch env.command {
	case "ADD":
		parent := waiter.BecomeLean(variables...)
		return add(env, parent)
	case "VERSION":
		return tellVersion()
	case "DEL", "CHECK", "GC", "STATUS":
		return 0
	case "":
		write(unix.Stderr, usage)
		return 0
	default:
		return fail(conf{}, codeVariables, "unknown CNI_COMMAND "+env.command)
	}
}

// write writes a text whole, or as much as is taken.
func write(fd int, text string) {
	for len(text) > 0 {
		n, err := unix.Write(fd, []byte(text))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return // there is nowhere left to say that this failed
		}
		text = text[n:]
	}
}
