// The Go runtime need not read CPU limits from cgroups: the plugin hardly uses the CPU.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Pacemaker-cni is the waiting room: the chained CNI plugin in which a pod waits, before its
// sandbox exists, until the pod-pacemaker daemon of its node admits it.
//
// It does not change the network. ADD waits, and then prints the result of the plugins before
// it unchanged. It fails, so that kubelet tries again, if the daemon decides so, if the runtime
// that ran it is gone, and at once if anything in the folder of the CNI configurations changes:
// containerd holds a lock during each ADD, then waits for that lock, and so does every pod of
// the node. In any other case, also without a daemon, the pod continues: a fault in pacing never
// keeps a pod from starting. CHECK, DEL, GC and STATUS do nothing and succeed.
//
// Hundreds of these processes may wait on one node; see package waiter. The plugin parses its
// configuration itself. With skel of containernetworking/cni, encoding/json and net, a waiting
// process has a PSS of 3.6 MiB, and each of twenty has 1.0 MiB; without them, 2.0 and 0.6 MiB.
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
		write(os.Stdout, text)
		return 0
	}
	r := parseRequest(unix.Environ())
	switch r.command {
	case "ADD":
		parent := waiter.BecomeLean(variables...)
		return add(r, parent)
	case "VERSION":
		return writeVersions()
	case "DEL", "CHECK", "GC", "STATUS":
		return 0
	case "":
		write(os.Stderr, usage)
		return 0
	default:
		return fail(conf{}, codeVariables, "unknown CNI_COMMAND "+r.command)
	}
}

// write writes a text, or as much of it as is read.
func write(f *os.File, text string) { _, _ = f.WriteString(text) } // an error cannot be reported anywhere
