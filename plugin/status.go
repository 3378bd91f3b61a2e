package plugin

import (
	"fmt"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Status implements admin.Provider.
func (d *Daemon) Status() admin.Status {
	signals := d.pacer.sensors.now()
	now := time.Now()
	held := d.pacer.limiter.Snapshot(now)
	s := admin.NewStatus(now, held, d.pacer.limiter.Recent())
	s.Signals = admin.NewSignals(signals, held.Settings)
	s.Node, s.Instance, s.Version, s.Since = d.options.NodeName, d.options.Instance, d.options.Version, d.since
	s.Mode = admin.Cluster
	if d.options.Standalone() {
		s.Mode = admin.Standalone
	} else {
		s.PodWatch = &admin.PodWatch{Healthy: d.watch.Healthy()}
	}
	var err error
	s.Runtime.Socket = d.options.NRISocket
	s.Runtime.Connected, s.Runtime.Synchronized, s.Runtime.Name, s.Runtime.Version, err = d.connection.state()
	if err != nil {
		s.Runtime.LastError = err.Error()
	}
	e := d.pacer.config.Load()
	s.Config = admin.Config{Name: e.Name, Origin: string(e.Origin), Generation: e.Generation, Mode: e.Spec.GetMode()}
	d.pacer.markShadows(s.Waiting)
	d.pacer.markShadows(s.Starting)
	if e.Origin != crd.OriginNone {
		s.Config.Spec = &e.Spec
	}
	s.Policies = adminPolicies(d.policyStates(), d.pacer.limiter.Groups(now))
	why := d.pacer.noGate()
	s.Gate = admin.Gate{
		Mode: string(d.options.Gate), Path: d.options.GatePath, Usable: why == "", WhyNot: why,
		Waiters: int(d.pacer.atGate.Load()), TimeoutSeconds: admin.Seconds(d.options.GateTimeout.Seconds()),
	}
	s.Refused = admin.Refused{
		Sandbox:   d.pacer.refusedSandboxes.Load(),
		Container: d.pacer.refusedContainers.Load(),
	}
	s.Refused.NotAtSandbox = d.pacer.refusals.runtime.barred()
	s.Refused.CPUShare = d.pacer.refusals.share(now)
	return s
}

// Why implements admin.Provider.
func (d *Daemon) Why(namespace, name string) (admin.Why, error) {
	now := time.Now()
	s := d.pacer.limiter.Snapshot(now)
	v, ok := named(namespace+"/"+name, d.pacer.limiter.Recent(), s.Starting, s.Waiting)
	if !ok {
		return admin.Why{}, fmt.Errorf("%s/%s: %w: it neither waits nor starts, and did neither lately", namespace, name, admin.ErrUnknownPod)
	}
	w := admin.NewWhy(now, v, s)
	if t := d.pacer.limiter.Lookup(v.UID); t != nil {
		_, w.Shadow = d.pacer.shadowed(t)
	}
	return w, nil
}

// named gives the pod with this name; of several, the one that waits, else starts, else
// ended last.
func named(name string, lists ...[]throttle.TicketView) (last throttle.TicketView, ok bool) {
	for _, v := range slices.Concat(lists...) {
		if v.Name == name {
			last, ok = v, true
		}
	}
	return last, ok
}

// Ready implements admin.Provider.
func (d *Daemon) Ready() error {
	if why := d.standby.Load(); why != nil {
		return *why
	}
	if _, _, _, _, err := d.connection.state(); err != nil {
		return err
	}
	select {
	case <-d.limits:
	case <-d.answered():
	default:
		return errNoConfiguration
	}
	return nil
}
