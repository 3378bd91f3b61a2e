package report

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// The reasons of the conditions of a PacemakerConfig, besides reasonInvalid.
const (
	reasonValid        = "Valid"
	reasonSamePriority = "SamePriority"
	reasonNoConflict   = "NoConflict"
)

// stopped returns whether the daemon of a node has reported that it was stopped.
func stopped(n v1alpha1.PacemakerNodeStatus) bool {
	c := meta.FindStatusCondition(n.Conditions, v1alpha1.ConditionConnected)
	return c != nil && c.Reason == v1alpha1.ReasonStopped
}

// sumConfig returns the status of a config from the reports of the nodes. before is its current status.
func sumConfig(now time.Time, config crd.KnownConfig, nodes []v1alpha1.PacemakerNodeStatus, before v1alpha1.PacemakerConfigStatus) v1alpha1.PacemakerConfigStatus {
	status := v1alpha1.PacemakerConfigStatus{ObservedGeneration: config.Generation}
	var where, others []string
	for _, n := range nodes {
		if stopped(n) {
			continue
		}
		status.ReportingNodes++
		inForce := n.Config == config.Name && n.Origin != string(crd.OriginFile)
		if inForce {
			status.Nodes++
			if n.ConfigGeneration == config.Generation {
				status.UpdatedNodes++
			}
		}
		switch {
		case inForce && len(n.Conflicts) > 0:
			where, others = append(where, n.NodeName), append(others, n.Conflicts...)
		case slices.Contains(n.Conflicts, config.Name):
			where, others = append(where, n.NodeName), append(others, n.Config)
		}
	}
	accepted := metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: reasonValid}
	if config.Fault != "" {
		accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, reasonInvalid, "the newest generation is invalid and ignored: "+config.Fault
	}
	conflicting := metav1.Condition{Type: v1alpha1.ConditionConflicting, Status: metav1.ConditionFalse, Reason: reasonNoConflict}
	if len(where) > 0 {
		conflicting.Status, conflicting.Reason = metav1.ConditionTrue, reasonSamePriority
		conflicting.Message = fmt.Sprintf("of the same priority on %d nodes (%s), where the first by name is in force: %s", len(where), some(where), some(others))
	}
	status.Conditions = summed(before.Conditions, now, config.Generation, accepted, conflicting)
	return status
}

// summed returns before with these conditions, each instead of the one of its type. It sets their generation and time.
func summed(before []metav1.Condition, now time.Time, generation int64, conditions ...metav1.Condition) []metav1.Condition {
	after := slices.Clone(before)
	for _, c := range conditions {
		c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now)
		c.Message = plain.Line(c.Message, mostMessage)
		meta.SetStatusCondition(&after, c)
	}
	return after
}
