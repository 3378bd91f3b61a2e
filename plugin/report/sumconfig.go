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

// configSum is what the reports of the nodes say of one config. It keeps no report.
type configSum struct {
	config                   crd.KnownConfig
	nodes, updated, reported int32
	where                    names           // the nodes that configs of the same priority also select
	others                   map[string]bool // the names of those configs
}

func newConfigSum(config crd.KnownConfig) *configSum {
	return &configSum{config: config, others: map[string]bool{}}
}

// add adds the report of a node.
func (s *configSum) add(n v1alpha1.PacemakerNodeStatus) {
	if stopped(n) {
		return
	}
	s.reported++
	inForce := n.Config == s.config.Name && n.Origin != string(crd.OriginFile)
	if inForce {
		s.nodes++
		if n.ConfigGeneration == s.config.Generation {
			s.updated++
		}
	}
	switch {
	case inForce && len(n.Conflicts) > 0:
		s.where.add(n.NodeName)
		for _, other := range n.Conflicts {
			s.others[other] = true
		}
	case slices.Contains(n.Conflicts, s.config.Name):
		s.where.add(n.NodeName)
		s.others[n.Config] = true
	}
}

// status returns the status of the config. before is its current status.
func (s *configSum) status(now time.Time, before v1alpha1.PacemakerConfigStatus) v1alpha1.PacemakerConfigStatus {
	accepted := metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: reasonValid}
	if s.config.Fault != "" {
		accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, reasonInvalid, "the newest generation is invalid and ignored: "+s.config.Fault
	}
	conflicting := metav1.Condition{Type: v1alpha1.ConditionConflicting, Status: metav1.ConditionFalse, Reason: reasonNoConflict}
	if s.where.count > 0 {
		var others names
		for name := range s.others {
			others.add(name)
		}
		conflicting.Status, conflicting.Reason = metav1.ConditionTrue, reasonSamePriority
		conflicting.Message = fmt.Sprintf("of the same priority on %d nodes (%s), where the first by name is in force: %s", s.where.count, s.where, others)
	}
	return v1alpha1.PacemakerConfigStatus{
		ObservedGeneration: s.config.Generation, Nodes: s.nodes, UpdatedNodes: s.updated, ReportingNodes: s.reported,
		Conditions: summed(before.Conditions, now, s.config.Generation, accepted, conflicting),
	}
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
