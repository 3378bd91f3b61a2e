package crd

import (
	"context"
	"fmt"
	"sync"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

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
	placed   signal // the labels were read, if there are any

	mu     sync.Mutex
	labels map[string]string // nil until the Node is seen
	uid    types.UID
}

func newNodeFollower(api kube.Interface, name string, log logrus.FieldLogger) *nodeFollower {
	return &nodeFollower{api: api, name: name, log: log, onNode: func(*corev1.Node) {}, placed: newSignal()}
}

// run follows until ctx ends, then returns nil. An error means that it could not begin. When
// the Node object goes, the last labels stay: the node is still there to read this.
func (n *nodeFollower) run(ctx context.Context, refused func()) error {
	api, only := n.api.Nodes(), fields.OneTermEqualSelector(metav1.ObjectNameField, n.name).String()
	lw := cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return api.Watch(ctx, o)
		},
	}
	observe := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok && node.Name == n.name {
			n.observe(node)
		}
	}
	i, err := informer.New(&informer.Reach{What: "this node", Log: n.log, Refused: refused}, lw, n.api, &corev1.Node{}, trimNode,
		cache.ResourceEventHandlerFuncs{AddFunc: observe, UpdateFunc: func(_, obj any) { observe(obj) }})
	if err != nil {
		return fmt.Errorf("watch node %s: %w", n.name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { i.Run(ctx) })
	select {
	case <-ctx.Done():
		return nil
	case <-i.Synced():
	}
	if labels, _ := n.now(); labels == nil {
		n.log.WithField("node", n.name).Warn("the API server has no such node: until it has, only a PacemakerConfig without nodeSelector can be in force")
	}
	n.placed.set()
	<-ctx.Done()
	return nil
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

// now gives the labels of this node, and the UID of its Node object.
func (n *nodeFollower) now() (map[string]string, types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.labels, n.uid
}

// trimNode drops all of a Node but its name, version, labels and conditions.
func trimNode(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			},
			Status: corev1.NodeStatus{Conditions: node.Status.Conditions},
		}, nil
	}
	return obj, nil
}
