package crd

import (
	"context"
	"sync"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

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
	placed   chan struct{} // closed once the labels were read, if there are any

	mu     sync.Mutex
	labels map[string]string // nil until the Node is seen
	uid    types.UID
}

func newNodeFollower(o SourceOptions) *nodeFollower {
	return &nodeFollower{api: o.Nodes, name: o.NodeName, log: o.Log, onNode: o.OnNode, placed: make(chan struct{})}
}

// run follows until ctx ends. When the Node object goes, the last labels stay: the node is still there to read this.
func (n *nodeFollower) run(ctx context.Context, refused func()) {
	i := informer.New(n.api.Nodes(), informer.Options[*corev1.Node]{
		What: "this node", Client: n.api, Only: fields.OneTermEqualSelector(metav1.ObjectNameField, n.name),
		Kind: &corev1.Node{}, Keep: trimNode, Refused: refused, Log: n.log,
		Changed: func(_, after *corev1.Node) {
			if after != nil && after.Name == n.name {
				n.observe(after)
			}
		},
	})
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { i.Run(ctx) })
	select {
	case <-ctx.Done():
		return
	case <-i.Synced():
	}
	if labels, _ := n.now(); labels == nil {
		n.log.WithField("node", n.name).Warn("the API server has no such node: until it has, only a PacemakerConfig without nodeSelector can be in force")
	}
	close(n.placed)
	<-ctx.Done()
}

// observe takes over what the Node says now.
func (n *nodeFollower) observe(node *corev1.Node) {
	n.setLabels(node)
	for _, tell := range n.onChange {
		tell()
	}
	n.onNode(node)
}

func (n *nodeFollower) setLabels(node *corev1.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.uid, n.labels = node.UID, node.Labels
	if n.labels == nil {
		n.labels = map[string]string{}
	}
}

// now returns the labels of this node, and the UID of its Node object.
func (n *nodeFollower) now() (map[string]string, types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.labels, n.uid
}

// trimNode drops all of a Node but its name, version, labels and conditions.
func trimNode(object runtime.Object) *corev1.Node {
	node, _ := object.(*corev1.Node) // the informer checks that
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
		},
		Status: corev1.NodeStatus{Conditions: node.Status.Conditions},
	}
}
