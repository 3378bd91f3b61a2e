// Package startuptaint removes the taint that keeps pods from a node whose pods are not paced yet.
package startuptaint

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/crd/faultlog"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// lookEvery is the time between two looks at the node, which send no request.
const lookEvery = 2 * time.Second

// taintBackoff spaces out the attempts to remove the taint, up to one in half a minute, for ever: a node with the taint
// gets no pods.
var taintBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 30 * time.Second}

// Remover removes the taint. All fields are required.
type Remover struct {
	Client kube.Interface
	Key    string
	Node   func() *corev1.Node             // the newest version that is known; nil if none is
	Paced  func(ctx context.Context) error // why no daemon paces the node's pods; nil if one does. It may block
	Log    logrus.FieldLogger
}

// Run removes the taint whenever the node has it and pods are paced, until ctx ends: kubelet may register the node again,
// and autoscalers taint nodes late, or again.
func (t Remover) Run(ctx context.Context) {
	var faults faultlog.Log
	remove := func(ctx context.Context) (done bool, _ error) { return t.remove(ctx, &faults), nil } // an error would end the attempts
	// The only error of what this calls is that ctx ended.
	for ctx.Err() == nil && wait.PollUntilContextCancel(ctx, lookEvery, false, t.isDue) == nil {
		_ = taintBackoff.DelayFunc().Until(ctx, true, true, remove)
	}
}

// isDue reports whether the node has the taint and pods are paced.
func (t Remover) isDue(ctx context.Context) (bool, error) { return t.due(ctx) != nil, nil }

// due returns the node if it has the taint and pods are paced, and else nil.
func (t Remover) due(ctx context.Context) *corev1.Node {
	node := t.Node()
	if node == nil || len(t.keep(node)) == len(node.Spec.Taints) || t.Paced(ctx) != nil {
		return nil
	}
	return node
}

// remove tries once, if pods are still paced, and reports whether that is enough. It removes the taints with the key, and
// changes nothing else. It logs what is wrong if the last try had something else.
func (t Remover) remove(ctx context.Context, faults *faultlog.Log) (done bool) {
	node := t.due(ctx)
	if node == nil {
		faults.Changed("")
		return true
	}
	// With the version, the API server refuses the patch if the node has changed.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": node.ResourceVersion},
		"spec":     map[string]any{"taints": t.keep(node)},
	})
	if err == nil {
		_, err = t.Client.Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	log, fault := t.Log.WithField("taint", t.Key), ""
	switch {
	case err == nil:
		log.Info("took the startup taint off the node: pods are paced")
	case ctx.Err() != nil, apierrors.IsConflict(err): // after a conflict, the next version decides
		return false
	case apierrors.IsForbidden(err):
		fault = "cannot remove the startup taint: the daemon may not patch its node (set startupTaint.enabled in the chart); trying again until it may"
	default:
		fault = "the startup taint is still on the node; trying again"
	}
	if faults.Changed(fault+string(apierrors.ReasonForError(err))) && err != nil {
		log.WithError(err).Warn(fault)
	}
	return err == nil
}

// keep returns the node's other taints.
func (t Remover) keep(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool { return taint.Key == t.Key })
}
