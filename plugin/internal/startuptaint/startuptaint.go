// Package startuptaint removes the taint that keeps pods from a node whose pods are not paced yet.
package startuptaint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// taintEvery is the time between two checks whether pods are paced.
const taintEvery = time.Second

// rejoinEvery is the time between two checks whether the node has registered again, which is rare.
const rejoinEvery = 10 * time.Second

// taintBackoff spaces out the attempts to remove the taint, up to one in half a minute, for ever: a node with the taint
// gets no pods.
var taintBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 30 * time.Second}

// Remover removes the taint. All fields are required.
type Remover struct {
	Client    kube.Interface
	Node, Key string
	NodeUID   func() types.UID // of the Node object; empty until it is seen
	Ready     func() error     // why pods are not paced; nil: they are
	Log       logrus.FieldLogger
}

// Run waits until pods are paced, and then tries to remove the taint until it is gone. It does so again for each new Node
// object of the node, until ctx ends: after `kubectl delete node`, kubelet registers with the taint again.
func (t Remover) Run(ctx context.Context) {
	isPaced := func(context.Context) (bool, error) {
		err := t.Ready()
		return err == nil || errors.Is(err, admin.ErrStandby), nil // by this daemon, or by the one for which it stands by
	}
	// The only error of what this calls is that ctx ended.
	for ctx.Err() == nil && wait.PollUntilContextCancel(ctx, taintEvery, true, isPaced) == nil {
		before := t.NodeUID() // read before the taint is looked for, so that no later Node is missed
		hasRejoined := func(context.Context) (bool, error) { return t.NodeUID() != before, nil }
		_ = taintBackoff.DelayFunc().Until(ctx, true, true, t.remove)
		_ = wait.PollUntilContextCancel(ctx, rejoinEvery, true, hasRejoined)
	}
}

// remove tries once, and reports whether that is enough.
func (t Remover) remove(ctx context.Context) (done bool, _ error) {
	removed, err := t.removeTaint(ctx)
	log := t.Log.WithField("taint", t.Key)
	switch {
	case removed:
		log.Info("took the startup taint off the node: pods are paced")
	case err == nil, ctx.Err() != nil:
	case apierrors.IsForbidden(err):
		log.WithError(err).Error("cannot remove the startup taint: the daemon may not patch its node (set startupTaint.enabled in the chart)")
	default:
		log.WithError(err).Warn("the startup taint is still on the node; trying again")
	}
	return err == nil, nil //nolint:nilerr // an error would end the attempts
}

// removeTaint removes the taints with the key from the node, and changes nothing else. It fails if the node was changed
// meanwhile.
func (t Remover) removeTaint(ctx context.Context) (removed bool, err error) {
	n, err := t.Client.Nodes().Get(ctx, t.Node, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("look at the node's taints: %w", err)
	}
	keep := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(taint corev1.Taint) bool { return taint.Key == t.Key })
	if len(keep) == len(n.Spec.Taints) {
		return false, nil
	}
	// With the version, the API server refuses the patch if the node has changed.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": n.ResourceVersion},
		"spec":     map[string]any{"taints": keep},
	})
	if err != nil {
		return false, err
	}
	if _, err := t.Client.Nodes().Patch(ctx, t.Node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return false, fmt.Errorf("take the taint off the node: %w", err)
	}
	return true, nil
}
