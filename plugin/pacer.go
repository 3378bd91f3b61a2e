package plugin

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// podSource is what the pacer asks about pods: the pod watch.
type podSource interface {
	Get(uid string) (podwatch.Pod, bool)
	Await(ctx context.Context, uid string) (podwatch.Pod, bool)
	Healthy() bool
	Heard(uid string) time.Time
	ListAnew(now time.Time, why string)
}

// pacer turns what the runtime, the hooks and the pod watch tell into calls of
// the limiter, and chooses how a pod waits. Its methods are safe for concurrent
// use; those that may wait say so.
type pacer struct {
	options   Options
	limiter   *throttle.Limiter
	pods      podSource // nil: standalone
	gate      *gateUse
	hold      holdBudget
	refusals  refusalCost
	metrics   *metrics
	log       logrus.FieldLogger
	notices   notices
	podEvents *podEvents
	nodes     func() int // of the cluster; 0: not known
	signs     *signs
	stalls    *stalls
	sensors   *sensors
	keeper    *policies.Keeper
	claimer   interface{ Wake() } // nil: no policy can have the scope Cluster

	config   atomic.Pointer[crd.Effective]
	settings atomic.Pointer[throttle.Settings] // that follow from config
	// requestTimeout is when the runtime gives a handler up, in nanoseconds; 0: not known yet.
	requestTimeout atomic.Int64
	// For status: refusals at each point so far, and hooks in the gate now.
	refusedSandboxes, refusedContainers atomic.Uint64
	atGate                              atomic.Int64

	mu       sync.Mutex
	records  map[string]*record   // by pod key
	starting map[string]*measured // what was measured of the starts under way, by pod key

	turns  turnBoard
	letsGo *valve      // set while nobody is held
	off    atomic.Bool // the mode is Off
	// shutdown is set while the node is being shut down: nobody starts who has to wait.
	shutdown     *valve
	shutdownOver *time.Timer // guarded by mu
	rejoin       *rejoin
	woken        chan struct{}        // holds at most one: run is to look at all starts
	pulse        chan chan<- struct{} // each is closed when run has gone round once more
	mute         muteCheck
}

func newPacer(o Options, pods podSource, m *metrics) *pacer {
	p := &pacer{
		options: o, limiter: throttle.New(time.Now(), throttle.Settings{}), pods: pods,
		gate: newGateUse(o), metrics: m, log: o.Log, notices: noNotices{}, podEvents: newPodEvents(), nodes: func() int { return 0 },
		signs: newSigns(o), stalls: newStalls(o),
		records: map[string]*record{}, starting: map[string]*measured{},
		mute:  newMuteCheck(),
		woken: make(chan struct{}, 1), pulse: make(chan chan<- struct{}),
	}
	p.keeper = policies.New(policies.Options{Limiter: p.limiter, Log: o.Log})
	p.sensors = newSensors(o, p.limiter, func(kind, reason, message string) { p.notices.node(kind, reason, message) })
	p.config.Store(&crd.Effective{Origin: crd.OriginNone})
	p.settings.Store(&throttle.Settings{})
	p.turns.init()
	p.rejoin = newRejoin()
	p.letsGo, p.shutdown = newValve(), newValve()
	return p
}

// configure puts a configuration in force.
func (p *pacer) configure(now time.Time, e crd.Effective, cores int) {
	before := p.mode()
	waiting := len(p.limiter.Snapshot(now).Waiting)
	s := SettingsOf(e.Spec, cores)
	p.sensors.prepare(s, e.Spec.ThrottleConfig.PressureWindow())
	p.settings.Store(&s)
	p.off.Store(e.Spec.GetMode() == v1alpha1.ModeOff) // before anybody is admitted for it
	p.limiter.Configure(now, s)
	p.keeper.Suspend(now, e.Spec.GetMode() == v1alpha1.ModeOff)
	p.config.Store(&e) // after the limits: what status calls in force is
	p.sensors.sampler.Wake()
	p.log.WithFields(logrus.Fields{
		"config": e.Name, "origin": e.Origin, "generation": e.Generation,
		"mode": e.Spec.GetMode(), "limits": admin.NewLimits(s).String(),
	}).Info("configuration in force")
	p.changeMode(now, before, waiting)
	p.judgeAllWaiting(now)
}

// recordOfLocked gives the record of the sandbox's pod, made where there was none, and
// takes over what the sandbox says. p.mu must be held.
func (p *pacer) recordOfLocked(pod *api.PodSandbox) *record {
	key := podKey(pod)
	r := p.records[key]
	if r == nil {
		r = newRecord(pod)
		p.records[key] = r
	}
	r.see(pod, p.keeper.Needs())
	return r
}

// joinLocked gives the ticket of a pod that starts with the named container, or, where
// that is empty, with its sandbox. p.mu must be held.
func (p *pacer) joinLocked(now time.Time, r *record, container string, pod podwatch.Pod) *throttle.Ticket {
	return p.joinGroupedLocked(now, r, pod, throttle.Request{
		UID: r.uid, Name: r.title(), Flow: r.namespace, Priority: pod.Priority, MaxWait: pod.ActiveDeadline / 10,
		Repeats: r.exits[container].repeats,
	})
}
