package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// told is what a node tells that follows generation 3 of the config "default".
func told(name string, changes ...func(*v1alpha1.PacemakerNodeStatus)) v1alpha1.PacemakerNodeStatus {
	at := metav1.NewTime(noon.Add(-time.Minute))
	n := v1alpha1.PacemakerNodeStatus{
		NodeName: name, Config: "default", ConfigGeneration: 3, Ready: true, Waiting: 4, Starting: 2, Written: &at,
	}
	for _, change := range changes {
		change(&n)
	}
	return n
}

func TestSum(t *testing.T) {
	t.Parallel()
	config := crd.Known{Name: "default", Generation: 3}
	unready := func(n *v1alpha1.PacemakerNodeStatus) { n.Ready = false }
	late := func(n *v1alpha1.PacemakerNodeStatus) { n.ConfigGeneration = 2 }
	other := func(n *v1alpha1.PacemakerNodeStatus) { n.Config = "another" }
	tied := func(n *v1alpha1.PacemakerNodeStatus) { n.Conflicts = []string{"zero"} }
	lost := func(n *v1alpha1.PacemakerNodeStatus) { n.Config, n.Conflicts = "another", []string{"default"} }
	for name, c := range map[string]struct {
		fault                           string
		nodes                           []v1alpha1.PacemakerNodeStatus
		count, ready, waiting, starting int32
		isReady                         bool
		reason, message, conflict       string
	}{
		"all is well": {
			nodes: []v1alpha1.PacemakerNodeStatus{told("a"), told("b"), told("c", other)},
			count: 2, ready: 2, waiting: 8, starting: 4, isReady: true, reason: "InForce", message: "in force on all 2 nodes",
		},
		"nobody": {reason: "NoNodes", message: "in force on no node"},
		"one does not pace": {
			nodes: []v1alpha1.PacemakerNodeStatus{told("a"), told("b", unready)},
			count: 2, ready: 1, waiting: 8, starting: 4, reason: "NodesNotReady", message: "1 of 2 nodes do not pace pods: b",
		},
		"many are late": {
			nodes: []v1alpha1.PacemakerNodeStatus{
				told("g", late), told("b", late), told("c", late), told("d", late), told("e", late), told("f", late), told("a"),
			},
			count: 7, ready: 7, waiting: 28, starting: 14, reason: "Updating",
			message: "6 of 7 nodes have another generation in force: b, c, d, e, f and 1 more",
		},
		"invalid": {
			fault: "spec.mode: wrong", nodes: []v1alpha1.PacemakerNodeStatus{told("a", late)},
			count: 1, ready: 1, waiting: 4, starting: 2, reason: "Invalid", message: "the newest generation is left out: spec.mode: wrong",
		},
		"tied, and first by name": {
			nodes: []v1alpha1.PacemakerNodeStatus{told("a", tied)},
			count: 1, ready: 1, waiting: 4, starting: 2, isReady: true, reason: "InForce", message: "in force on all 1 nodes",
			conflict: "also selected with the same priority by zero: a; the first config by name is in force there",
		},
		"tied, and not first": {
			nodes: []v1alpha1.PacemakerNodeStatus{told("a", lost)}, reason: "NoNodes", message: "in force on no node",
			conflict: "also selected with the same priority by another: a; the first config by name is in force there",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := config
			config.Fault = c.fault
			s := sum(noon, config, c.nodes, v1alpha1.PacemakerConfigStatus{})
			assert.EqualValues(t, 3, s.ObservedGeneration)
			assert.Equal(t, []int32{c.count, c.ready, c.waiting, c.starting}, []int32{s.Nodes, s.ReadyNodes, s.Waiting, s.Starting})
			ready := meta.FindStatusCondition(s.Conditions, "Ready")
			require.NotNil(t, ready)
			assert.Equal(t, c.isReady, ready.Status == metav1.ConditionTrue)
			assert.Equal(t, []string{c.reason, c.message}, []string{ready.Reason, ready.Message})
			conflict := meta.FindStatusCondition(s.Conditions, "Conflict")
			require.NotNil(t, conflict)
			assert.Equal(t, c.conflict != "", conflict.Status == metav1.ConditionTrue)
			assert.Equal(t, c.conflict, conflict.Message)
		})
	}
}

// What stays as it is must not be written again.
func TestASumThatStaysIsTheSame(t *testing.T) {
	t.Parallel()
	config := crd.Known{Name: "default", Generation: 3}
	nodes := []v1alpha1.PacemakerNodeStatus{told("a")}
	first := sum(noon, config, nodes, v1alpha1.PacemakerConfigStatus{})
	second := sum(noon.Add(time.Minute), config, nodes, first)
	assert.Equal(t, first, second)

	nodes[0].Ready = false
	third := sum(noon.Add(time.Minute), config, nodes, first)
	assert.Equal(t, noon.Add(time.Minute), meta.FindStatusCondition(third.Conditions, "Ready").LastTransitionTime.Time)
	assert.Equal(t, noon, meta.FindStatusCondition(third.Conditions, "Conflict").LastTransitionTime.Time)
	assert.Equal(t, noon, meta.FindStatusCondition(first.Conditions, "Ready").LastTransitionTime.Time, "what was is not changed")
}

func TestAMessageIsBounded(t *testing.T) {
	t.Parallel()
	s := sum(noon, crd.Known{Name: "default", Fault: strings.Repeat("ä", 5000)}, nil, v1alpha1.PacemakerConfigStatus{})
	message := meta.FindStatusCondition(s.Conditions, "Ready").Message
	assert.LessOrEqual(t, len(message), mostMessage)
	assert.NotContains(t, message, "\uFFFD")
}

// All daemons together do nothing oftener than 100 times a second.
func TestIntervalsBoundTheWholeCluster(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{0, 1, 100, 1000, 5000, 20_000} {
		every := interval(leastWrite, nodes)
		assert.GreaterOrEqual(t, every, leastWrite)
		assert.LessOrEqual(t, float64(nodes)/every.Seconds(), 100.0, nodes)
		assert.LessOrEqual(t, retry(nodes), mostRetry)
	}
	assert.Equal(t, 10*time.Second, interval(leastWrite, 1000))
	assert.Equal(t, 50*time.Second, interval(leastSum, 5000))
	assert.Less(t, interval(leastWrite, math.MaxInt32), goneAfter, "whatever somebody wrote, the nodes are not taken for gone")
	assert.Equal(t, 5*time.Second, retry(1))
	assert.Equal(t, 100*time.Second, retry(5000))
	assert.Less(t, 2*(heartbeat+heartbeat/4)+2*interval(leastWrite, 5000), goneAfter, "one heartbeat may get lost")
}
