package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// The reasons of the conditions.
const (
	reasonInForce  = "InForce"
	reasonInvalid  = "Invalid"
	reasonNoNodes  = "NoNodes"
	reasonUpdating = "Updating"
	reasonNotReady = "NodesNotReady"
	reasonTie      = "SamePriority"
	reasonNoTie    = "NoTie"
)

const (
	namesShown  = 5    // in a message
	mostMessage = 1024 // bytes
)

// sum gives the status of a config by what the nodes tell. before is its status so
// far, from which conditions that stay as they are keep their time.
func sum(now time.Time, config crd.Known, nodes []v1alpha1.PacemakerNodeStatus, before v1alpha1.PacemakerConfigStatus) v1alpha1.PacemakerConfigStatus {
	status := v1alpha1.PacemakerConfigStatus{ObservedGeneration: config.Generation}
	var late, unready, tied, others []string
	for _, n := range nodes {
		if n.Config != config.Name {
			if slices.Contains(n.Conflicts, config.Name) {
				tied, others = append(tied, n.NodeName), append(others, n.Config)
			}
			continue
		}
		status.Nodes++
		status.Waiting += n.Waiting
		status.Starting += n.Starting
		if n.Ready {
			status.ReadyNodes++
		} else {
			unready = append(unready, n.NodeName)
		}
		if n.ConfigGeneration != config.Generation {
			late = append(late, n.NodeName)
		}
		if len(n.Conflicts) > 0 {
			tied, others = append(tied, n.NodeName), append(others, n.Conflicts...)
		}
	}
	status.Conditions = slices.Clone(before.Conditions)
	for _, c := range []metav1.Condition{readiness(config, status.Nodes, late, unready), conflict(tied, others)} {
		c.ObservedGeneration, c.LastTransitionTime = config.Generation, metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, c)
	}
	return status
}

func readiness(config crd.Known, nodes int32, late, unready []string) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case config.Fault != "":
		c.Reason, c.Message = reasonInvalid, "the newest generation is left out: "+config.Fault
	case nodes == 0:
		c.Reason, c.Message = reasonNoNodes, "in force on no node"
	case len(late) > 0:
		c.Reason, c.Message = reasonUpdating, fmt.Sprintf("%d of %d nodes have another generation in force: %s", len(late), nodes, some(late))
	case len(unready) > 0:
		c.Reason, c.Message = reasonNotReady, fmt.Sprintf("%d of %d nodes do not pace pods: %s", len(unready), nodes, some(unready))
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonInForce, fmt.Sprintf("in force on all %d nodes", nodes)
	}
	c.Message = shorten(c.Message)
	return c
}

// shorten cuts a message to what a condition may have.
func shorten(message string) string {
	if len(message) > mostMessage {
		return strings.ToValidUTF8(message[:mostMessage], "")
	}
	return message
}

func conflict(tied, others []string) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionConflict, Status: metav1.ConditionFalse, Reason: reasonNoTie}
	if len(tied) > 0 {
		c.Status, c.Reason = metav1.ConditionTrue, reasonTie
		c.Message = fmt.Sprintf("also selected with the same priority by %s: %s; the first config by name is in force there", some(others), some(tied))
	}
	return c
}

// some names a few, sorted, and says how many there are beside.
func some(names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if more := len(names) - namesShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namesShown], ", "), more)
	}
	return strings.Join(names, ", ")
}
