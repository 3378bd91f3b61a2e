package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

func knownConfig(name string, generation int64) crd.KnownConfig {
	return crd.KnownConfig{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-config", Generation: generation}}
}

func withConfig(node, config string, generation int64, conflicts ...string) v1alpha1.PacemakerNodeStatus {
	return v1alpha1.PacemakerNodeStatus{
		NodeName: node, Config: config, ConfigGeneration: generation, Origin: string(crd.OriginAPI), Conflicts: conflicts, Conditions: paced,
	}
}

// sumConfig returns the status of a config from the reports of the nodes.
func sumConfig(now time.Time, config crd.KnownConfig, nodes []v1alpha1.PacemakerNodeStatus, before v1alpha1.PacemakerConfigStatus) v1alpha1.PacemakerConfigStatus {
	s := newConfigSum(config)
	for _, n := range nodes {
		s.add(n)
	}
	return s.status(now, before)
}

func TestTheStatusOfAConfigSaysWhereItIsInForce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	file := withConfig("e", "a", 0)
	file.Origin = string(crd.OriginFile)
	stopped := withConfig("f", "a", 3)
	stopped.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStopped}}
	disk := withConfig("g", "a", 3)
	disk.Origin = string(crd.OriginDisk)
	nodes := []v1alpha1.PacemakerNodeStatus{
		withConfig("a", "a", 3, "b", "c"), withConfig("b", "a", 2), withConfig("c", "b", 1, "c"), withConfig("d", "", 0), file, stopped, disk,
	}
	status := sumConfig(now, knownConfig("a", 3), nodes, v1alpha1.PacemakerConfigStatus{})
	assert.Equal(t, []any{int64(3), int32(3), int32(2), int32(6)}, []any{status.ObservedGeneration, status.Nodes, status.UpdatedNodes, status.ReportingNodes})
	assert.True(t, meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionAccepted))
	assert.Equal(t, &metav1.Condition{
		Type: v1alpha1.ConditionConflicting, Status: metav1.ConditionTrue, Reason: "SamePriority", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(now),
		Message: "of the same priority on 1 nodes (a), where the first by name is in force: b, c",
	}, meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionConflicting))

	loser := sumConfig(now, knownConfig("c", 1), nodes, v1alpha1.PacemakerConfigStatus{})
	assert.Zero(t, loser.Nodes)
	assert.Equal(t, "of the same priority on 2 nodes (a, c), where the first by name is in force: a, b",
		meta.FindStatusCondition(loser.Conditions, v1alpha1.ConditionConflicting).Message)

	alone := sumConfig(now, knownConfig("d", 1), nodes, v1alpha1.PacemakerConfigStatus{})
	assert.True(t, meta.IsStatusConditionFalse(alone.Conditions, v1alpha1.ConditionConflicting))
}

func TestAnInvalidConfigIsNotAccepted(t *testing.T) {
	t.Parallel()
	config := knownConfig("a", 4)
	config.Fault = "spec.maxWait: bad"
	before := sumConfig(time.Unix(1000, 0), knownConfig("a", 3), nil, v1alpha1.PacemakerConfigStatus{})
	status := sumConfig(time.Unix(2000, 0), config, nil, before)
	accepted := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAccepted)
	assert.Equal(t, metav1.ConditionFalse, accepted.Status)
	assert.Equal(t, "the newest generation is invalid and ignored: spec.maxWait: bad", accepted.Message)
	assert.EqualValues(t, 2000, accepted.LastTransitionTime.Unix())
	assert.EqualValues(t, 1000, meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionConflicting).LastTransitionTime.Unix(), "it did not change")
}

// Every write of a config goes to the watches of all nodes.
func TestTheStatusOfAConfigIsWrittenOnlyWhenItChanges(t *testing.T) {
	inSumming(t, func(t *testing.T, w *summing) {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "uid": "uid-of-config", "generation": int64(3)}}}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
		configs := w.api.Resource(v1alpha1.Resource)
		_, err := configs.Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
		deleted := knownConfig("deleted", 1)
		w.configs = []crd.KnownConfig{knownConfig("a", 3), deleted}
		w.creates(withConfig("a", "a", 3))
		written := func() (n int) {
			for _, a := range w.api.Actions() {
				if a.GetVerb() == "patch" && a.GetResource() == v1alpha1.Resource {
					n++
				}
			}
			return n
		}
		stop := w.runs(w.s)
		w.passes(10 * time.Minute)
		assert.Equal(t, 1, written())
		object, err := configs.Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		assert.EqualValues(t, 1, statusOf[v1alpha1.PacemakerConfigStatus](object).UpdatedNodes)

		w.updates(withConfig("a", "a", 2))
		w.passes(10 * time.Minute)
		assert.Equal(t, 2, written())
		assert.Empty(t, w.log.AllEntries()[1:], "one line says that it sums up")
		stop()
	})
}
