package crd

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// nodeFollower follows this node's Node object: its labels, and what kubelet reports of a
// shutdown and of what the node runs short of.
type nodeFollower struct {
	api      kube.Interface
	name     string
	log      logrus.FieldLogger
	onChange []func()
	placed   signal // the labels were read, if there are any

	// Only the goroutine that tells of the Node touches these.
	onShutdown, onPressure func(begins bool)
	seenUp                 bool // the node was seen when it was not being shut down
	down                   bool // it is being shut down since
	pressed                bool // it runs short of something

	mu     sync.Mutex
	labels map[string]string // nil until the Node is seen
	uid    types.UID
}

func newNodeFollower(api kube.Interface, name string, log logrus.FieldLogger) *nodeFollower {
	return &nodeFollower{api: api, name: name, log: log, placed: newSignal(), onShutdown: func(bool) {}, onPressure: func(bool) {}}
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
	says := shutsDown(node)
	n.seenUp = n.seenUp || !says
	if begins := says && n.seenUp; begins != n.down {
		n.down = begins
		n.onShutdown(begins)
	}
	if begins := len(pressures(node)) > 0; begins != n.pressed {
		n.pressed = begins
		n.onPressure(begins)
	}
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

// shutdownMessage is part of what kubelet says in its Node's condition Ready from the
// moment in which the machine tells it of a shutdown, until that is called off or
// kubelet starts again. It says so in no other form.
const shutdownMessage = "node is shutting down"

// shutsDown tells whether kubelet says so.
func shutsDown(node *corev1.Node) bool {
	ready := conditions(node, corev1.NodeReady)
	return len(ready) > 0 && ready[0].Status == corev1.ConditionFalse && strings.Contains(ready[0].Message, shutdownMessage)
}

// pressures gives the conditions of a Node by which it runs short of something, for which
// kubelet evicts pods.
func pressures(node *corev1.Node) []corev1.NodeCondition {
	return slices.DeleteFunc(conditions(node, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure),
		func(c corev1.NodeCondition) bool { return c.Status != corev1.ConditionTrue })
}

// conditions gives the conditions of these types.
func conditions(node *corev1.Node, types ...corev1.NodeConditionType) (found []corev1.NodeCondition) {
	for _, c := range node.Status.Conditions {
		if slices.Contains(types, c.Type) {
			found = append(found, c)
		}
	}
	return found
}

// trimNode drops all of a Node but its name, version, labels, readiness and pressure.
func trimNode(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			},
			Status: corev1.NodeStatus{Conditions: append(conditions(node, corev1.NodeReady), pressures(node)...)},
		}, nil
	}
	return obj, nil
}
