package crd

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// nodeFollower follows this node's Node object.
type nodeFollower struct {
	api      kube.Interface
	name     string
	log      logrus.FieldLogger
	onChange []func()
	onNode   func(*corev1.Node)
	synced   chan struct{}               // closed once the API server has answered
	node     atomic.Pointer[corev1.Node] // nil until it is seen
}

func newNodeFollower(o SourceOptions) *nodeFollower {
	return &nodeFollower{api: o.Nodes, name: o.NodeName, log: o.Log, onNode: o.OnNode, synced: make(chan struct{})}
}

// run follows the Node until ctx ends. When it is deleted, its last labels stay: the machine still runs this daemon.
func (n *nodeFollower) run(ctx context.Context, refused func()) {
	i := informer.New(n.api.Nodes(), informer.Options[*corev1.Node]{
		What: "this node", Client: n.api, Only: fields.OneTermEqualSelector(metav1.ObjectNameField, n.name).String(),
		Kind: &corev1.Node{}, Keep: trimNode, Refused: refused, Log: n.log,
		Changed: func(_, after *corev1.Node) {
			if after != nil && after.Name == n.name {
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
		n.log.WithField("node", n.name).Warn("the API server has no such node: until it has, only a PacemakerConfig without nodeSelector can be in force")
	}
	close(n.synced)
}

// observe stores a new version of the Node and notifies those that follow it.
func (n *nodeFollower) observe(node *corev1.Node) {
	n.node.Store(node)
	for _, changed := range n.onChange {
		changed()
	}
	n.onNode(node)
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
