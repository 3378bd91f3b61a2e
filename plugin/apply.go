package plugin

import (
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/settings"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/signals"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
)

// applier puts configurations and policies in force.
type applier struct {
	observer   *observe.Observer
	signals    *signals.Monitor
	starts     *starts.Starts
	cores      int
	standalone bool          // no API server will send a configuration: to have none counts as one
	limits     chan struct{} // closed once a configuration is in force
	limited    sync.Once     // closes limits
}

// configure puts a configuration in force.
func (a *applier) configure(e crd.Effective) {
	defer a.observer.Caught("configure")
	s := settings.Of(e.Spec, a.cores)
	a.signals.Prepare(s, settings.PressureWindow(e.Spec.ThrottleConfig))
	a.starts.Configure(time.Now(), e, s)
	a.signals.Wake()
	a.observer.Report(observe.Configured{
		Name: e.Name, Origin: string(e.Origin), Generation: e.Generation, Mode: e.Spec.GetMode(), Limits: admin.ConfigText(s, e.Spec),
	})
	if a.standalone || e.Origin != crd.OriginNone {
		a.limited.Do(func() { close(a.limits) })
	}
}

// setPolicies puts policies in force.
func (a *applier) setPolicies(inForce []*v1alpha1.StartPolicy) {
	defer a.observer.Caught("setPolicies")
	a.starts.Policies.Set(time.Now(), inForce)
}
