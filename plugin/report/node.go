package report

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// stopTimeout is the longest time of the write with which a daemon reports that it was stopped.
const stopTimeout = 2 * time.Second

var errNoNode = errors.New("the API server has not yet reported this node")

// Facts are what RunNode reports. The functions must not block.
type Facts struct {
	// NodeUID returns the UID of the Node object; empty if it is not known yet.
	NodeUID func() types.UID
	// Status returns the current status. RunNode sets its NodeName, Instance and LastReportTime, and the times of its
	// conditions.
	Status func() v1alpha1.PacemakerNodeStatus
}

// RunNode reports until ctx ends, and then reports that the daemon was stopped. It blocks. Only one call may run at a
// time. It logs each error once and tries again.
func (r *Reporter) RunNode(ctx context.Context, f Facts) {
	// All daemons of a cluster may have started at the same moment.
	for next := rand.N(interval(leastWrite, r.Nodes())); ; {
		select {
		case <-ctx.Done():
			r.stop(context.WithoutCancel(ctx), f)
			return
		case <-time.After(next):
		}
		err := r.report(ctx, time.Now(), f)
		if r.known() {
			next = spread(interval(leastWrite, r.Nodes()))
		} else {
			next = laterStill(next, err)
		}
		if ctx.Err() == nil {
			r.nodeFaults.Try(r.Log, err, "cannot write this node's PacemakerNode, so 'kubectl get pacemakernodes' does not show its state; trying again",
				"this node's PacemakerNode is written again")
		}
	}
}

// report writes the status if it has changed, but for a limit that no pod needs, if the Node was made again, or if a
// heartbeat is due.
func (r *Reporter) report(ctx context.Context, now time.Time, f Facts) error {
	status, uid := f.Status(), f.NodeUID()
	status.NodeName, status.Instance = r.NodeName, r.Instance
	status.LastReportTime, status.Conditions = nil, r.timed(now, status.Conditions)
	if r.written != nil && r.owner == uid && now.Before(r.due) && equality.Semantic.DeepEqual(*r.written, settled(status, *r.written)) {
		return nil
	}
	r.written = nil // until the write has succeeded
	if err := r.write(ctx, now, uid, status, nil); err != nil {
		return err
	}
	r.written, r.owner, r.due = &status, uid, now.Add(spread(heartbeat))
	return nil
}

// timed returns the conditions, each with the time since which it has its status, as far as this daemon has reported it.
func (r *Reporter) timed(now time.Time, conditions []metav1.Condition) []metav1.Condition {
	r.conditions = slices.Clone(r.conditions)
	for _, c := range conditions {
		c.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&r.conditions, c)
	}
	return r.conditions
}

// settled returns a status with the limit that was written if no pod waits or starts: the adaptive limit follows the
// load of the node then, too, and no pod needs it.
func settled(status, written v1alpha1.PacemakerNodeStatus) v1alpha1.PacemakerNodeStatus {
	if status.Waiting == 0 && status.Starting == 0 {
		status.Limit = written.Limit
	}
	return status
}

// stop reports that the daemon was stopped, if it has written a status before.
func (r *Reporter) stop(ctx context.Context, f Facts) {
	if r.due.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	status, now, message := f.Status(), time.Now(), "the daemon was stopped: pods start unpaced"
	// The status of the next daemon, which may have started already, is kept.
	err := r.write(ctx, now, f.NodeUID(), v1alpha1.PacemakerNodeStatus{
		NodeName: r.NodeName, Instance: r.Instance, Version: status.Version, Config: status.Config,
		ConfigGeneration: status.ConfigGeneration, Origin: status.Origin, Mode: status.Mode,
		Conditions: r.timed(now, []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStopped, Message: message},
			{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStopped, Message: message},
		}),
	}, r.at)
	if err != nil {
		r.Log.WithError(err).Info("cannot write to this node's PacemakerNode that the daemon was stopped")
	}
}

// write replaces the status, and creates the object if there is none. If only is not nil, it only replaces a status
// that was written at that time.
func (r *Reporter) write(ctx context.Context, now time.Time, uid types.UID, status v1alpha1.PacemakerNodeStatus, only *metav1.Time) error {
	if uid == "" {
		return errNoNode
	}
	at := metav1.NewTime(now)
	status.LastReportTime = &at
	// An object of this name may belong to another node, or to an earlier node of this name that is not collected
	// yet. It is not changed.
	where := map[string]any{"/metadata/ownerReferences/0/uid": uid}
	if only != nil {
		where["/status/lastReportTime"] = only
	}
	api := r.API.Resource(v1alpha1.NodeResource)
	written, err := replaceStatus(ctx, api, r.Object, status, where)
	if apierrors.IsNotFound(err) && only == nil {
		if err := r.create(ctx, api, uid); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		written, err = replaceStatus(ctx, api, r.Object, status, where)
	}
	switch {
	case err == nil:
		r.at = &at
		r.reported.Store(writtenAt(written))
	case apierrors.IsInvalid(err):
		return fmt.Errorf("PacemakerNode %s belongs to another node, another daemon has written it, or the CRD is older than the daemon: %w", r.Object, err)
	}
	return err
}

func (r *Reporter) create(ctx context.Context, api dynamic.ResourceInterface, uid types.UID) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.NodeKind))
	object.SetName(r.Object)
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: r.NodeName, UID: uid}})
	_, err := api.Create(ctx, object, metav1.CreateOptions{})
	return err
}
