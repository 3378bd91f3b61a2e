package plugin

import (
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/settings"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/signals"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// applier puts configurations and policies in force. It implements admin.Switch.
type applier struct {
	observer   *observe.Observer
	signals    *signals.Monitor
	starts     *starts.Starts
	standalone bool          // no API server will send a configuration: to have none counts as one
	limits     chan struct{} // closed once a configuration is in force
	limited    sync.Once     // closes limits
	coresKnown bool          // the CPUs that pods can use were known in full once; only New and followCores use it

	// turn has a value while a configuration is put in force: those calls must not overlap. It is no mutex, because
	// mutexes are taken meanwhile. It guards the fields below.
	turn   chan struct{}
	cores  cores.Cores   // those that the pods can use
	chosen crd.Effective // in force unless the daemon is switched off
	until  time.Time     // the daemon is switched off until then; zero if it is not
}

// configure puts a configuration in force, or if the daemon is switched off, once it is switched on.
func (a *applier) configure(e crd.Effective) {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	a.chosen = e
	a.apply()
}

// setCores puts the configuration in force for other cores.
func (a *applier) setCores(c cores.Cores) {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	a.cores = c
	a.signals.SetCores(c)
	a.apply()
}

// coresNow returns the cores for which the configuration is in force.
func (a *applier) coresNow() cores.Cores {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	return a.cores
}

// SwitchOff implements admin.Switch.
func (a *applier) SwitchOff(span time.Duration) (until time.Time) {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	a.until = time.Time{}
	if span > 0 {
		a.until = time.Now().Add(span)
		time.AfterFunc(span, a.switchOn)
	}
	a.apply()
	return a.until
}

// switchOn ends what SwitchOff began, if its time is over.
func (a *applier) switchOn() {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	if !a.until.IsZero() && !time.Now().Before(a.until) { // else another call of SwitchOff came first
		a.until = time.Time{}
		a.apply()
	}
}

// Admit implements admin.Switch.
func (a *applier) Admit(uid string) bool {
	return a.starts.Enforces() && a.starts.StartAnyway(time.Now(), uid, reasons.ByHand)
}

// offUntil returns until when the daemon is switched off, or zero if it is not.
func (a *applier) offUntil() time.Time {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	return a.until
}

// apply puts the configuration in force that counts now. The caller has the turn.
func (a *applier) apply() {
	defer a.observer.Caught("configure")
	e := a.chosen
	if !a.until.IsZero() {
		e.Spec.Mode = v1alpha1.ModeDisabled
	}
	s := settings.Of(e.Spec, a.cores)
	a.signals.Prepare(s, settings.PressureWindow(e.Spec.ThrottleConfig))
	a.starts.Configure(time.Now(), e, s)
	a.signals.Wake()
	a.observer.Report(observe.Configured{
		Name: e.Name, Origin: string(e.Origin), Generation: e.Generation, Mode: e.Spec.Mode, Limits: admin.ConfigText(s, e.Spec), OffUntil: a.until,
	})
	if a.standalone || e.Origin != crd.OriginNone {
		a.limited.Do(func() { close(a.limits) })
	}
}

// setPolicies puts policies in force.
func (a *applier) setPolicies(inForce []*v1alpha1.StartPolicy) {
	defer a.observer.Caught("setPolicies")
	a.starts.SetPolicies(time.Now(), inForce)
}
