package crd

import (
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
	informer *informer.Informer[*corev1.Node]
	changed  func()                      // is called after each change, and once the API server has answered
	listed   atomic.Bool                 // the API server has answered
	refused  atomic.Bool                 // the API server does not let this daemon read the Node
	node     atomic.Pointer[corev1.Node] // nil until it is seen
}

// follow makes the informer. When the Node is deleted, its last labels stay: the machine still runs this daemon.
func (n *nodeFollower) follow() {
	n.informer = informer.New(n.Nodes.Nodes(), informer.Options[*corev1.Node]{
		What: "this node", Client: n.Nodes, Only: fields.OneTermEqualSelector(metav1.ObjectNameField, n.NodeName).String(),
		Kind: &corev1.Node{}, Keep: trimNode, Refused: n.refuse, Log: n.Log,
		Changed: func(_, after *corev1.Node) {
			if after != nil && after.Name == n.NodeName {
				n.node.Store(after)
				n.changed()
				n.OnNode(after)
			}
		},
		Complete: func() {
			if n.node.Load() == nil {
				n.Log.WithField("node", n.NodeName).Warnf("the API server has no node %s: until it has, only a PacemakerConfig without nodeSelector can be in force", n.NodeName)
			}
			n.listed.Store(true)
			n.changed()
		},
	})
}

// refuse is called when the API server does not let this daemon read the Node.
func (n *nodeFollower) refuse() {
	if !n.listed.Load() && n.refused.CompareAndSwap(false, true) {
		n.Log.WithField("node", n.NodeName).Warnf("the API server does not let this daemon read the labels of node %s: until it does, what is on disk stays in force; "+
			"if nothing is, only what has no nodeSelector can be", n.NodeName)
		n.changed()
	}
}

// labels returns the labels of the Node, none until it is seen.
func (n *nodeFollower) labels() map[string]string {
	if node := n.node.Load(); node != nil {
		return node.Labels
	}
	return nil
}

// trimNode keeps the name, UID, version, time of creation, labels, taints and conditions of a Node.
func trimNode(object runtime.Object) *corev1.Node {
	node, _ := object.(*corev1.Node) // the informer checks that
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			CreationTimestamp: node.CreationTimestamp,
		},
		Spec:   corev1.NodeSpec{Taints: node.Spec.Taints},
		Status: corev1.NodeStatus{Conditions: node.Status.Conditions},
	}
}
