package plugin

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/report"
)

// Limits in the CRD of PacemakerNode.
const (
	mostConflicts = 16
	mostMessage   = 512 // bytes
	mostVersion   = 64  // bytes
)

// report writes the PacemakerNode of this node, and takes its turn to sum up the PacemakerNodes of all nodes, until ctx
// ends.
func (d *Daemon) report(ctx context.Context) error {
	if d.cluster == nil {
		return nil
	}
	select {
	case <-d.source.Ready():
	case <-ctx.Done():
		return nil
	}
	r, facts := d.cluster.reporter, report.Facts{NodeUID: d.source.NodeUID, Status: d.nodeStatus}
	return d.runParts(ctx,
		part{"summary", forever(func(ctx context.Context) {
			r.RunSummary(ctx, report.Summed{Policies: d.source.KnownPolicies, Configs: d.source.KnownConfigs})
		})},
		part{"nodeReport", forever(func(ctx context.Context) { r.RunNode(ctx, facts) })})
}

// nodeStatus returns the status of this node's PacemakerNode. Nothing in it changes with time alone, so that it is written
// only when something happens.
func (d *Daemon) nodeStatus() v1alpha1.PacemakerNodeStatus {
	e := d.starts.Config()
	n := v1alpha1.PacemakerNodeStatus{
		Version: plain.Line(d.options.Version, mostVersion), Config: e.Name, Origin: string(e.Origin),
		ConfigGeneration: e.Generation, Mode: e.Spec.Mode,
	}
	connected := metav1.Condition{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonConnecting}
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPaced}
	n.Conflicts = e.Ties[:min(len(e.Ties), mostConflicts)]
	if s := d.connection.State(); s.Connected && s.Synchronized {
		connected.Status, connected.Reason = metav1.ConditionTrue, v1alpha1.ReasonConnected
		n.WaitMethod, ready.Message = waitMethod(d.roomStatus(), d.waiting.Gate.Off())
	}
	if fault := d.source.Fault(e.Name); fault != "" {
		ready.Message = strings.Trim("the newest generation of the config is left out: "+fault+"; "+ready.Message, "; ")
	}
	if err := d.Ready(); err != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, v1alpha1.ReasonNotPaced, err.Error()
	}
	if until := d.applier.offUntil(); !until.IsZero() {
		ready.Message = strings.Trim("switched off on this node until "+until.UTC().Format(time.RFC3339)+"; "+ready.Message, "; ")
	}
	ready.Message = plain.Line(ready.Message, mostMessage)
	n.Conditions = []metav1.Condition{ready, connected}
	n.Blind = d.signals.Blind()
	now := time.Now()
	n.Policies = observe.NodePolicies(d.policyStates(), d.starts.Groups(now))
	countPods(&n, admin.NewStatus(now, d.starts.Snapshot(now), nil))
	return n
}

// waitMethod returns how pods wait, and a message if they do not wait in the gate. gateOff is why they do not, or "" if
// they do.
func waitMethod(room admin.Room, gateOff string) (method v1alpha1.WaitMethod, message string) {
	if room.Installed && room.WhyNot == "" {
		if gateOff != "" {
			message = "pods that cannot wait in the room are refused, and kubelet tries again: " + gateOff
		}
		return v1alpha1.WaitRoom, message
	}
	if gateOff != "" {
		return v1alpha1.WaitRefusal, "pods are refused, and kubelet tries again: " + gateOff
	}
	return v1alpha1.WaitGate, ""
}

// countPods sets the numbers of pods that wait and start, and what holds those that wait.
func countPods(n *v1alpha1.PacemakerNodeStatus, s admin.Status) {
	n.Waiting, n.Starting, n.Limit = int32(len(s.Waiting)), int32(admin.NewSlots(s).Used), int32(s.Limit)
	if len(s.Waiting) == 0 {
		return
	}
	first := slices.MinFunc(s.Waiting, func(a, b admin.Pod) int { return a.Since.Compare(b.Since) })
	at := metav1.NewTime(first.Since).Rfc3339Copy() // as the API server returns it
	n.WaitingSince = &at
	if s.HeldBy != nil {
		n.HeldBy, n.Signal = string(s.HeldBy.Reason), s.HeldBy.Signal
	}
}
