package plugin

import (
	"errors"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Status implements admin.Provider.
func (d *Daemon) Status() admin.Status {
	signals := d.signals.Measure()
	now := time.Now()
	snapshot := d.starts.Snapshot(now)
	s := d.podStatus(now, snapshot)
	s.Signals = admin.NewSignals(signals, snapshot.Settings)
	s.Node, s.Instance, s.Since = d.options.NodeName, d.options.Instance, d.since
	s.Version, s.Commit = d.options.Version, d.options.Commit
	s.Standalone = d.cluster == nil
	if d.cluster != nil {
		s.PodWatch = &admin.PodWatch{Healthy: d.cluster.watch.Healthy()}
		s.Unread = d.cluster.unread(d.source)
	}
	c := d.connection.State()
	s.Runtime.Socket = d.options.NRISocket
	s.Runtime.Connected, s.Runtime.Synchronized, s.Runtime.Name, s.Runtime.Version = c.Connected, c.Synchronized, c.Runtime, c.Version
	s.Runtime.RequestTimeoutSeconds, s.Runtime.RegistrationTimeoutSeconds = admin.Seconds(c.Request.Seconds()), admin.Seconds(c.Registration.Seconds())
	s.Runtime.TimeoutWarning = c.Warning()
	if c.Err != nil {
		s.Runtime.LastError = c.Err.Error()
	}
	e := d.starts.Config()
	s.Config = admin.Config{Name: e.Name, Origin: string(e.Origin), Generation: e.Generation, Mode: e.Spec.Mode, OffUntil: d.applier.offUntil()}
	if e.Origin != crd.OriginNone {
		s.Config.Spec = &e.Spec
	}
	for _, a := range d.starts.StartAfter() {
		s.StartAfter = append(s.StartAfter, admin.StartAfter{For: a.For, State: string(a.State), Until: a.Until})
	}
	pods := d.applier.coresNow()
	s.Cores = admin.Cores{Usable: pods.Count, Node: pods.Node, Why: pods.From}
	s.Policies = observe.AdminPolicies(d.policyStates(), d.starts.Groups(now))
	why := d.waiting.Gate.Off()
	s.Gate = admin.Gate{
		Use: string(d.options.Gate), Path: d.options.GatePath, Usable: why == "", WhyNot: why,
		Waiters: d.waiting.Gate.Waiters(), TimeoutSeconds: admin.Seconds(d.options.GateTimeout.Seconds()),
		Expired: d.waiting.Gate.Expired(),
	}
	s.Room = d.roomStatus()
	s.SettledBusy = d.starts.SettledBusy.Load()
	s.Refused.Sandbox, s.Refused.Container = d.waiting.Refusals.Counts()
	s.Refused.SandboxesLeft = d.waiting.Refusals.SandboxesLeft(now)
	s.Refused.NotAtSandbox = d.waiting.Refusals.NotAtSandbox()
	return s
}

// podStatus returns the part of the status that is about pods and the limiter.
func (d *Daemon) podStatus(now time.Time, snapshot throttle.Snapshot) admin.Status {
	shadows, inRoom := d.starts.InShadow(), d.waiting.Room.Pods()
	for i, v := range snapshot.Waiting {
		if inRoom[v.UID] {
			snapshot.Waiting[i] = v.HeldBack()
		}
	}
	s := admin.NewStatus(now, snapshot, d.starts.Recent())
	for _, pods := range [][]admin.Pod{s.Waiting, s.Preparing, s.Starting, s.Ended} {
		for i := range pods {
			p := &pods[i]
			p.Shadow = shadows[p.UID]
			if p.State == throttle.Waiting || p.State == throttle.Starting {
				p.Cost = d.costOf(p.UID, p.Restarts)
			}
			p.InRoom = p.State == throttle.Waiting && inRoom[p.UID]
		}
	}
	return s
}

// costOf returns the expected cost of the start of a pod, or nil if the pod watch does not know the pod.
func (d *Daemon) costOf(uid string, repeats int) *admin.Cost {
	pod := d.starts.Known(uid)
	if !pod.IsKnown() {
		return nil
	}
	e := d.memory.Expect(pod, repeats > 0)
	c := &admin.Cost{Basis: string(e.Basis), KilledAfterSeconds: admin.Seconds(pod.Patience.Seconds())}
	if e.Basis != learning.None {
		c.Cost = &e.Cost
	}
	return c
}

// Costs implements admin.Provider.
func (d *Daemon) Costs() admin.Costs {
	return admin.Costs{Machine: d.memory.Machine(), Costs: d.memory.Costs()}
}

var errNoConfiguration = errors.New("the API server has not sent the configuration yet: pods start unpaced")

// Ready implements admin.Provider.
func (d *Daemon) Ready() error {
	if why := d.standby.Load(); why != nil {
		return *why
	}
	if err := d.connection.Paces(); err != nil {
		return err
	}
	select {
	case <-d.applier.limits:
	case <-d.answered():
	default:
		return errNoConfiguration
	}
	if d.starts.Config().Origin == crd.OriginNone {
		return d.fileFault
	}
	return nil
}
