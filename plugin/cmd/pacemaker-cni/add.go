package main

import (
	"os"
	"strings"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/waiter"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

const (
	// defaultTimeout is used if the configuration has no timeout. By default, kubelet gives up
	// RunPodSandbox after 4 minutes.
	defaultTimeout = 200 * time.Second
	// daemonGrace is how long a process waits for a daemon if none ever sent it anything. A
	// daemon that is restarted needs less.
	daemonGrace = 10 * time.Second
	// lonelyPace is the time between two of these processes that leave.
	lonelyPace = 250 * time.Millisecond
	// askMost is how long the daemon has to answer if no pod may wait.
	askMost = time.Second

	// systemNamespace is the namespace of pods that the daemon itself may need. They never wait, even without a daemon.
	systemNamespace = "kube-system"

	folderChanged = "the CNI configuration changed, so that no pod can wait here at this moment; this one keeps its place in the queue, and kubelet tries again"
)

// add waits until the pod may have its sandbox, and prints the result of the plugins before it.
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
			write(os.Stderr, "pod-pacemaker: nothing started: "+o.Reason+"\n")
		}
		return fail(c, codeTryAgain, "pod-pacemaker: waiting to start: "+o.Reason)
	} else if o.Unpaced {
		write(os.Stderr, "pod-pacemaker: "+r.namespace+"/"+r.name+" comes up unpaced: "+o.Reason+"\n")
	}
	write(os.Stdout, c.prevResult+"\n")
	return 0
}

// wait waits for the decision of the daemon, if the pod has to wait at all.
func wait(r request, c conf, parent int, began time.Time) waiter.Outcome {
	hello := wire.Hello{PodUID: r.uid, ContainerID: r.sandbox, Name: r.namespace + "/" + r.name, Since: began, Room: true}
	switch {
	case c.socket == "", r.uid == "", r.namespace == systemNamespace, wire.IsStatic(r.uid):
		return waiter.Outcome{Starts: true}
	case !valid(hello):
		return waiter.Outcome{Starts: true, Unpaced: true, Reason: "the runtime named the pod by values that the daemon does not accept"}
	}
	files, readable := openFolder(c.confDir)
	note := noteOf(c.socket, r.uid)
	forecast, away := wire.Answer{Kind: wire.Forecast, LeaveAt: began.Add(daemonGrace), Pace: lonelyPace}, goneOf(c.socket)
	if since, noted := note.take(began); !since.IsZero() {
		hello.Since, forecast = since, noted
	}
	if away.forGood(began) {
		forecast.LeaveAt, forecast.Pace = began, 0
	}
	add := begun(r.netns, began)
	mayNotWait := !readable || files.changedSince(add, began)
	settles := !mayNotWait && files.changedSince(add.Add(-c.settle), began) && !readLongAgo(r.netns, time.Unix(0, files.newest), add, began)
	hello.Brief = mayNotWait || settles
	check := func(w *waiter.Waiter) *waiter.Outcome {
		last, contacted := w.LastForecast()
		early := settles && time.Now().Before(last.LeaveAt) // later, a pod leaves the room one by one
		silent := w.Alone() || time.Since(began) > askMost
		switch {
		case readable && files.changed(), early && silent && !contacted:
			note.leave(hello, last)
		case !mayNotWait && !early:
			return nil
		case contacted:
		case silent:
			return &waiter.Outcome{Starts: true, Unpaced: true, Reason: "no daemon, and no pod can wait here while the CNI configuration changes"}
		default:
			return nil
		}
		return &waiter.Outcome{Reason: folderChanged}
	}
	w := waiter.New(waiter.Start{
		Socket: c.socket, Hello: hello, Parent: parent, Deadline: began.Add(c.timeout), Forecast: forecast, AloneMost: aloneMost,
		Check: check, CheckEvery: checkEvery,
	}, began)
	o := w.Wait()
	if o.Starts && o.Unpaced && w.Alone() {
		away.mark()
	}
	return o
}

// valid reports whether the daemon can parse the hello, with its name.
func valid(h wire.Hello) bool {
	line := string(wire.AppendHello(nil, h))
	parsed, err := wire.ParseHello(strings.TrimSuffix(line, "\n"))
	return err == nil && parsed.Name == h.Name
}
