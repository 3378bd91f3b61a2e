package starts

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestARestartIsPacedUnlessAnotherAppContainerRuns(t *testing.T) {
	t.Parallel()
	lone, pair := map[string]podwatch.Kind{"app": podwatch.App}, map[string]podwatch.Kind{"app": podwatch.App, "other": podwatch.App}
	besideSidecar := map[string]podwatch.Kind{"sidecar": podwatch.Sidecar, "app": podwatch.App}
	app, allPaced, firstPaced := []string{"app"}, "spec: {}", "spec: {restarts: {pace: false}}"
	for name, c := range map[string]struct {
		has     map[string]podwatch.Kind
		starts  []string
		crashes []string
		config  string
		waits   bool
	}{
		"alone":                       {lone, app, app, allPaced, true},
		"the exit is not reported":    {lone, app, nil, allPaced, true},
		"beside a sidecar":            {besideSidecar, []string{"sidecar", "app"}, app, allPaced, true},
		"beside an app":               {pair, []string{"app", "other"}, app, allPaced, false},
		"all apps crashed":            {pair, []string{"app", "other"}, []string{"other", "app"}, allPaced, true},
		"restarts are not paced":      {lone, app, app, firstPaced, false},
		"not paced, and not reported": {lone, app, nil, firstPaced, false},
	} {
		onNode(t, func(t *testing.T, n *node) {
			n.configured(t, c.config, oneSlot)
			p := n.pod("crashes", containers(c.has)).hasStarted(c.starts...)
			holder := n.occupies("holder")
			p.exits(c.crashes...)
			if c.waits {
				p.waits("app")
				holder.getsReady()
				p.is(throttle.Starting, reasons.WithinLimits, name)
				return
			}
			p.mayStart("app")
			p.is(throttle.Starting, reasons.Exempt, name+": the restart is counted")
			assert.False(t, p.view().Slot, "%s: no slot was free", name)
			n.pod("first").runs().waits("app")
		})
	}
}

// Whoever reads the clock later may come first.
func TestARestartEndsThoughALaterCallCameBefore(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.pod("crashes").hasStarted("app")
		p.exits("app")
		n.ledger.limiter.Advance(time.Now().Add(10 * time.Millisecond))
		p.starts("app")
		p.getsReady()
		p.is(throttle.Started, reasons.Ready)
	})
}

func TestARestartBesideARunningContainerIsOverWhenItIsReady(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.pod("pair", containers(map[string]podwatch.Kind{"app": podwatch.App, "other": podwatch.App})).hasStarted("app", "other")
		p.exits("other")
		p.mayStart("other")
		n.passes(0)
		p.is(throttle.Starting, reasons.Exempt, "only the earlier containers are ready")
		p.begins("other")
		n.passes(0)
		p.is(throttle.Starting, reasons.Exempt, "the report is older than the restart")
		p.getsReady()
		p.is(throttle.Started, reasons.Ready)
	})
}

func TestANewSandboxIsAFirstStart(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{true, false} {
		onNode(t, func(t *testing.T, n *node) {
			n.configured(t, "spec: {restarts: {pace: false}}", oneSlot)
			p := n.pod("crashed").runs()
			p.starts("app")
			p.exits("app")
			if stopped {
				n.SandboxStopped(p.sandbox)
			}
			p.runs().starts("app")
			p.is(throttle.Starting, reasons.WithinLimits)
			assert.Zero(t, p.view().Repeats, "the end of the sandbox was reported: %v", stopped)
		})
	}
}

// The runtime may report an exit after kubelet has started the container again.
func TestALateReportOfAnExitChangesNothing(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		p := n.pod("crashed").hasStarted("app")
		late := p.latest["app"]
		holder := n.occupies("holder")
		p.waits("app")
		late.State = api.ContainerState_CONTAINER_STOPPED
		n.ContainerStopped(p.sandbox, late)
		p.is(throttle.Waiting, reasons.Concurrency)
		holder.getsReady()
		p.begins("app")
		n.ContainerStopped(p.sandbox, late)
		n.ContainerRemoved(p.sandbox, late)
		p.is(throttle.Starting, reasons.WithinLimits)
		p.exits("app")
		p.starts("app")
		assert.Equal(t, 2, p.view().Repeats, "each exit counts once")
	})
}
