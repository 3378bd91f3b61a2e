package main

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/waiter"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

const (
	// defaultTimeout is for a configuration that has none: kubelet gives RunPodSandbox up
	// after 4 minutes by default.
	defaultTimeout = 200 * time.Second
	// daemonGrace is how long one waits that no daemon ever told anything: the time in which
	// a daemon that was restarted is there again.
	daemonGrace = 10 * time.Second
	// lonelyPace is the time between two that leave then.
	lonelyPace = 250 * time.Millisecond
	// askMost is how long a daemon is asked where nobody may wait.
	askMost = time.Second

	folderChanged = "the CNI configuration changed, so that no pod can wait here at this moment; this one keeps its place in the queue, and kubelet tries again"
)

// add waits until the pod may have its sandbox, and passes the result on.
func add(r request, parent int) int {
	began := time.Now()
	c, err := readConf()
	switch {
	case err != nil:
		return fail(c, codeDecode, "cannot read the configuration: "+err.Error())
	case c.prevResult == "" || c.prevResult == "null":
		return fail(c, codeConf, "pacemaker-cni has to come after the plugin that makes the network")
	}
	if o := wait(r, c, parent, began); !o.Starts {
		if o.Orphaned {
			write(unix.Stderr, "pod-pacemaker: nothing started: "+o.Reason+"\n")
		}
		return fail(c, codeTryAgain, "pod-pacemaker: waiting to start: "+o.Reason)
	} else if o.Unpaced {
		write(unix.Stderr, "pod-pacemaker: "+r.namespace+"/"+r.name+" comes up unpaced: "+o.Reason+"\n")
	}
	write(unix.Stdout, c.prevResult+"\n")
	return 0
}

// wait waits for the daemon's decision, where there is something to wait for.
func wait(r request, c conf, parent int, began time.Time) waiter.Outcome {
	hello := wire.Hello{PodUID: r.uid, ContainerID: r.sandbox, Name: r.namespace + "/" + r.name, Since: began, Room: true}
	switch {
	case c.socket == "", r.uid == "", slices.Contains(c.exempt, r.namespace):
		return waiter.Outcome{Starts: true}
	case !sayable(hello):
		return waiter.Outcome{Starts: true, Unpaced: true, Reason: "the runtime told a pod that cannot be asked for"}
	}
	files, open := openFolder(c.confDir)
	note := noteOf(c.socket, r.uid)
	told := note.take(began)
	if !told.since.IsZero() {
		hello.Since = told.since
	}
	start := waiter.Start{
		Socket: c.socket, Hello: hello, Parent: parent,
		Deadline: began.Add(c.timeout), LeaveAt: began.Add(daemonGrace), Pace: lonelyPace,
	}
	if !told.leaveAt.IsZero() {
		start.LeaveAt, start.Pace = told.leaveAt, told.pace
	}
	w := waiter.New(start, began)
	mayNotWait := !open || files.changedSince(begun(r.netns, began), began)
	w.CheckEvery = checkEvery
	w.Check = func() *waiter.Outcome {
		leaveAt, pace, heard := w.Told()
		switch {
		case open && files.changed():
			if heard || !told.leaveAt.IsZero() {
				note.leave(turn{leaveAt: leaveAt, pace: pace, since: hello.Since})
			}
		case !mayNotWait:
			return nil
		case heard:
		case w.Alone(), time.Since(began) > askMost:
			return &waiter.Outcome{Starts: true, Unpaced: true, Reason: "no daemon, and no pod can wait here while the CNI configuration changes"}
		default:
			return nil
		}
		return &waiter.Outcome{Reason: folderChanged}
	}
	return w.Wait()
}

// sayable reports whether the hello fits a line.
func sayable(h wire.Hello) bool {
	line := string(wire.AppendHello(nil, h))
	_, err := wire.ParseHello(strings.TrimSuffix(line, "\n"))
	return err == nil
}
