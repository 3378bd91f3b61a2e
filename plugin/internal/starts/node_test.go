package starts

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// oneSlot lets one pod start at a time.
var oneSlot = throttle.Settings{MaxConcurrent: 1}

// node is a Starts with one slot. The test is its runtime and its kubelet. Each step takes a millisecond of a clock
// that only the steps move.
type node struct {
	*Starts
	t     *testing.T
	watch *asked
}

// newNode returns a node for a test in a bubble of synctest; change adjusts its options.
func newNode(t *testing.T, change ...func(*Options)) *node {
	t.Helper()
	n := &node{t: t, watch: &asked{pods: map[string]podwatch.Pod{}}}
	n.Starts = aStarts(append([]func(*Options){func(o *Options) { o.Pods = n.watch }}, change...)...)
	n.configured(t, "spec: {}", oneSlot)
	return n
}

// onNode runs a test in a bubble of synctest on a newNode.
func onNode(t *testing.T, test func(t *testing.T, n *node), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newNode(t, change...)) })
}

// onUnlimitedNode is onNode of a newUnlimitedNode.
func onUnlimitedNode(t *testing.T, test func(t *testing.T, n *node), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newUnlimitedNode(t, change...)) })
}

// standalone removes the pod watch.
func standalone(o *Options) { o.Pods = nil }

// passes lets time pass. It does a round of the loop each second, and one at the end.
func (n *node) passes(d time.Duration) {
	for ; d > time.Second; d -= time.Second {
		time.Sleep(time.Second)
		n.round(time.Now())
	}
	time.Sleep(d)
	n.round(time.Now())
}

// names returns the pods that wait and those that hold a slot, each in order.
func (n *node) names() (waiting, starting []string) {
	s := n.ledger.limiter.Snapshot(time.Now())
	for _, v := range s.Waiting {
		waiting = append(waiting, v.UID)
	}
	for _, v := range s.Starting {
		if v.Slot {
			starting = append(starting, v.UID)
		}
	}
	return waiting, starting
}

// counted returns the values of a metric by its label, except 0. For a histogram, it returns the counts.
func (n *node) counted(name string) map[string]float64 {
	n.t.Helper()
	families, err := n.o.Observer.Registry().Gather()
	require.NoError(n.t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if value := m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount()); f.GetName() == name && value != 0 {
				all[m.GetLabel()[0].GetValue()] = value
			}
		}
	}
	return all
}

// stranger returns a pod that the pod watch does not know.
func (n *node) stranger(name string) *testPod {
	return &testPod{
		n: n, uid: name, latest: map[string]*api.Container{}, running: map[string]string{},
		sandbox: &api.PodSandbox{Uid: name, Namespace: "default", Name: name},
	}
}

// pod returns a pod that the pod watch knows: always restarted, probed, with the container "app". The changes are made
// before the watch reports it.
func (n *node) pod(name string, changes ...func(*podwatch.Pod)) *testPod {
	p := n.stranger(name)
	p.becomesKnown(changes...)
	return p
}

// occupies starts a pod that holds the slot until its test makes it ready.
func (n *node) occupies(name string) *testPod {
	n.t.Helper()
	p := n.pod(name).runs()
	p.starts("app")
	p.is(throttle.Starting, reasons.WithinLimits)
	return p
}

// crowd makes sandboxes until one is refused, and returns the pod of that one.
func (n *node) crowd() (refused *testPod) {
	n.t.Helper()
	for i := range 100 {
		if p := n.pod("crowd-" + strconv.Itoa(i)); !p.run().Granted {
			return p
		}
	}
	require.FailNow(n.t, "no sandbox is refused")
	return nil
}
