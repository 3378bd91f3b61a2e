package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestWithoutAGatePodsAreRefusedAndNoneFails(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]nodeOption{
		"never":               {with(func(o *Options) { o.Gate = waiting.GateNever })},
		"no path":             {with(func(o *Options) { o.GatePath = "" })},
		"the hook is missing": {with(func(o *Options) { o.GatePath = "/nowhere/pacemaker-gate" })},
		"the hook is no program": {with(func(o *Options) {
			o.GatePath = filepath.Join(filepath.Dir(o.NRISocket), "hook")
			require.NoError(t, os.WriteFile(o.GatePath, []byte("text"), 0o600))
		})},
		"old containerd":  {onRuntime(func(o *runtimetest.Options) { o.Version = "v2.2.5" })},
		"another runtime": {onRuntime(func(o *runtimetest.Options) { o.Name = "cri-o" })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, oneAtATime, opts...)
			assert.NotEmpty(t, n.d.waiting.Gate.Off())
			holder := n.occupy("holder")
			p := n.pod("refused").runs()
			_, err := p.create("app")
			require.ErrorContains(t, err, string(reasons.Concurrency))
			assert.Zero(t, n.rt.Hooks())
			holder.getsReady()
			p.startsNow("app")
			p.becomes(throttle.Starting, reasons.WithinLimits)
		})
	}
}

func TestTheGateIsUsedWithAnUnknownRuntimeWhenAlwaysIsAsked(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone, with(func(o *Options) { o.Gate = waiting.GateAlways }),
		onRuntime(func(o *runtimetest.Options) { o.Name = "cri-o" }))
	first := n.strangePod("first").runs()
	first.startsNow("app")
	second := n.strangePod("second").runs()
	a := second.waitsAtGate("app") // though its restart policy is unknown
	require.NoError(t, first.sandbox.Remove(n.ctx))
	a.succeeds()
	second.becomes(throttle.Starting, reasons.WithinLimits)
}

func TestWithoutTheGateNothingFailsOnARuntimeThatRejectsHooks(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Gate = waiting.GateNever }),
		onRuntime(func(o *runtimetest.Options) { o.RejectHooks = true }))
	holder := n.occupy("holder")
	p := n.pod("refused").runs()
	_, err := p.create("app")
	require.ErrorContains(t, err, "kubelet tries again")
	holder.getsReady()
	p.startsNow("app")
}
