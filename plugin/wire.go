package plugin

import (
	"cmp"
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/signals"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// tuning is what tests change in a daemon, beside its options.
type tuning struct {
	timing                                 starts.Timing
	hold, savedHold, firstPause, firstTrip time.Duration // 0 means the default
	// These take the place of the cluster's parts when there is no cluster. Each may be nil.
	pods     starts.PodWatch
	stops    nri.StopSource
	metadata func(least int) map[string]int // nri.Options.Metadata
	events   observe.EventWriter
	leases   kube.Leases
	// These take the place of unix sockets, in which a test with a fake clock could not wait.
	listen rundir.Listening
	dial   nri.Dial // nil means the unix socket
}

// defaultTuning returns the tuning of a daemon outside of tests.
func defaultTuning() tuning {
	return tuning{timing: starts.DefaultTiming(), events: &observe.Recorder{}, listen: rundir.Serve}
}

// newDaemon returns a daemon that uses the API server through c. If c is nil, the daemon is standalone. Its parts are made in
// the order in which they use each other. The starts and the pod watch, which also call parts that are made later, are
// linked with these at the end.
func newDaemon(o Options, pods cores.Cores, file crd.Documents, c *clients, t tuning) *Daemon {
	policiesChanged, nodes := func(policies.Changes) {}, func() int { return 1 }
	var cl *cluster
	var observer *observe.Observer
	if c == nil {
		observer = observe.New(observe.Options{Log: o.Log, Events: t.events, Nodes: nodes})
	} else {
		cl, observer = newCluster(o, *c)
		nodes, policiesChanged = cl.reporter.Nodes, cl.policiesChanged
		t.pods, t.stops, t.metadata, t.leases = cl.watch, cl.watch, cl.watch.LargeMetadata, c.kube.Leases(o.Namespace)
	}
	if o.wantsRoom() && cni.InPlace(o.CNIConfDir) && t.timing.RoomReturns == 0 {
		t.timing.RoomReturns = roomReturns
	}
	boot := o.boot()
	memory := learning.New(o.costsPath(), machineOf(o.ProcRoot, pods.Node), o.Log)
	paced := starts.New(starts.Options{
		Pods: t.pods, Server: t.leases != nil, Observer: observer, Memory: memory, Log: o.Log, Waitable: o.GateTimeout, KeepReady: func(once starts.ReadyOnce) { o.keepReady(boot, once) },
		Relist: func() time.Duration { return relistWithin(nodes()) }, PoliciesChanged: policiesChanged,
		Roots: usage.Roots{Proc: o.ProcRoot, Cgroup: o.CgroupRoot}, Timing: t.timing,
	})
	monitor := signals.New(o.ProcRoot, o.CgroupRoot, pods, paced, observer.Report)
	applies := &applier{observer: observer, signals: monitor, starts: paced, cores: pods, standalone: c == nil, limits: make(chan struct{}), turn: make(chan struct{}, 1)}
	source := newSource(o, c, file, applies)
	claimer := newClaimer(o, t.leases, paced, nodes, observer)
	chooser := waiting.New(waiting.Options{
		Starts: paced, BreakerPause: t.firstTrip, Pods: t.pods, Observer: observer, Refused: monitor.Refused,
		Gate:     waiting.GateOptions{Use: o.Gate, Path: o.GatePath, Programs: o.Programs, Socket: o.SocketPath(), Timeout: o.GateTimeout},
		RefuseAt: o.RefuseAt, Hold: cmp.Or(t.hold, o.Hold), SavedHold: t.savedHold, Cores: pods.Node, ProcRoot: o.ProcRoot, NRISocket: o.NRISocket,
	})
	answers := make(chan struct{})
	installer := newCNI(o, answers, chooser.Room.Shut)
	connection := nri.New(nri.Options{
		Socket: o.NRISocket, Name: o.pluginName(), Index: o.NRIIndex,
		Handler: handler{starts: paced, waiting: chooser, observer: observer, refuseLarge: o.RefuseLargeEnvironments, cni: installer},
		Stops:   t.stops, Metadata: t.metadata, Bundles: o.Bundles(), InContainer: o.InPod, EndsFile: o.endsPath(), Boot: boot, Log: o.Log, FirstPause: t.firstPause, Dial: t.dial,
	})
	d := &Daemon{
		options: o, boot: boot, since: time.Now(), file: file, observer: observer, signals: monitor, starts: paced, waiting: chooser,
		memory: memory, connection: connection, applier: applies, cluster: cl, cni: installer, source: source, claimer: claimer, listen: t.listen,
		answering: sync.OnceFunc(func() { close(answers) }),
	}
	paced.Link(starts.Links{Round: d.round, Node: d.nodeObject, Forgotten: chooser.Forget})
	if cl != nil {
		cl.watch.OnChange(d.podChanged)
	}
	return d
}

// round is called in each round of the loop of the starts.
func (d *Daemon) round(now time.Time, waiting []throttle.TicketView) (inRoom map[string]bool, again time.Time) {
	d.signals.Wake()
	if d.claimer != nil {
		d.claimer.Wake()
	}
	return d.waiting.Room.Round(now, waiting)
}

// podChanged passes a change of a pod on. A pod that makes that panic ends nothing.
func (d *Daemon) podChanged(pod podwatch.Pod, deleted bool) {
	defer d.observer.CaughtPod("podChanged", pod.UID, pod.NamespacedName())
	d.starts.PodChanged(time.Now(), pod, deleted)
	if !deleted {
		d.waiting.Gate.PodChanged(pod)
	}
}
