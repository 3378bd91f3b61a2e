package crd

import (
	"context"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
)

// nodeFollower follows this node's Node object.
type nodeFollower struct {
	SourceOptions
	onChange []func()
	synced   chan struct{}               // closed once the API server has answered
	node     atomic.Pointer[corev1.Node] // nil until it is seen
}

func newNodeFollower(o SourceOptions) *nodeFollower {
	return &nodeFollower{SourceOptions: o, synced: make(chan struct{})}
}

// run follows the Node until ctx ends. When it is deleted, its last labels stay: the machine still runs this daemon.
func (n *nodeFollower) run(ctx context.Context, refused func()) {
	i := informer.New(n.Nodes.Nodes(), informer.Options[*corev1.Node]{
		What: "this node", Client: n.Nodes, Only: fields.OneTermEqualSelector(metav1.ObjectNameField, n.NodeName).String(),
		Kind: &corev1.Node{}, Keep: trimNode, Refused: refused, Log: n.Log,
		Changed: func(_, after *corev1.Node) {
			if after != nil && after.Name == n.NodeName {
				n.observe(after)
			}
		},
	})
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { i.Run(ctx) })
	select {
	case <-ctx.Done():
		return
	case <-i.Synced():
	}
	if n.node.Load() == nil {
		n.Log.WithField("node", n.NodeName).Warn("the API server has no such node: until it has, only a PacemakerConfig without nodeSelector can be in force")
	}
	close(n.synced)
}

// observe stores a new version of the Node and notifies those that follow it.
func (n *nodeFollower) observe(node *corev1.Node) {
	n.node.Store(node)
	for _, changed := range n.onChange {
		changed()
	}
	n.OnNode(node)
}

// labels returns the labels of the Node, none until it is seen.
func (n *nodeFollower) labels() map[string]string {
	if node := n.node.Load(); node != nil {
		return node.Labels
	}
	return nil
}

// trimNode keeps the name, UID, version, labels and conditions of a Node.
func trimNode(object runtime.Object) *corev1.Node {
	node, _ := object.(*corev1.Node) // the informer checks that
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
		},
		Status: corev1.NodeStatus{Conditions: node.Status.Conditions},
	}
}
