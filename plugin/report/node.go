package report

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// lastWords bounds the write with which a daemon reports that it was stopped.
const lastWords = 2 * time.Second

var errNoNode = errors.New("the API server has not yet reported this node")

// NodeOptions are the options of a [Node]. All are needed. Only Run calls the functions, and they must not block.
type NodeOptions struct {
	// API is a client of the API server.
	API dynamic.Interface
	// NodeName is the node's name. Instance is the daemon's name, and may be empty.
	NodeName, Instance string
	// NodeUID returns the UID of the Node object; empty if it is not known yet.
	NodeUID func() types.UID
	// Status returns the current status. Run sets its NodeName, Instance and Written.
	Status func() v1alpha1.PacemakerNodeStatus
	// Nodes returns the number of nodes in the cluster; 0 if it is not known yet.
	Nodes func() int
	// Log gets each error once.
	Log logrus.FieldLogger
}

// Node writes the PacemakerNode of one daemon.
type Node struct {
	NodeOptions
	faults faultLog

	written *v1alpha1.PacemakerNodeStatus // the last written status; nil if there is none, or if that is unknown
	due     time.Time                     // of the next heartbeat
	at      *metav1.Time                  // when written was written; nil as for written
}

// NewNode returns a Node. Run does its work.
func NewNode(o NodeOptions) *Node { return &Node{NodeOptions: o} }

// Run reports until ctx ends, and then reports that the daemon was stopped. It blocks. Call it once. It logs each error
// once and tries again.
func (n *Node) Run(ctx context.Context) {
	// All daemons of a cluster may have started at the same moment.
	failures := 0
	for next := rand.N(interval(leastWrite, n.Nodes())); ; next = spread(pause(interval(leastWrite, n.Nodes()), failures)) {
		select {
		case <-ctx.Done():
			n.stop(context.WithoutCancel(ctx))
			return
		case <-time.After(next):
		}
		err := n.report(ctx, time.Now())
		failures++
		if err == nil {
			failures = 0
		}
		if ctx.Err() == nil {
			n.faults.log(n.Log, err, "cannot write this node's PacemakerNode, so 'kubectl get pacemakernodes' does not show its state; trying again",
				"this node's PacemakerNode is written again")
		}
	}
}

// pause returns the time until the next try after this many failures.
func pause(least time.Duration, failures int) time.Duration {
	return min(max(least, heartbeat/2), least<<min(failures, 10))
}

// report writes the status if it has changed or if a heartbeat is due.
func (n *Node) report(ctx context.Context, now time.Time) error {
	status := n.Status()
	status.NodeName, status.Instance = n.NodeName, n.Instance
	status.Written = nil
	if n.written != nil && now.Before(n.due) && equality.Semantic.DeepEqual(*n.written, status) {
		return nil
	}
	n.written, n.at = nil, nil // until the write has succeeded
	if err := n.write(ctx, now, status, nil); err != nil {
		return err
	}
	n.written, n.due = &status, now.Add(spread(heartbeat))
	return nil
}

// stop reports that the daemon was stopped, if it has written a status before.
func (n *Node) stop(ctx context.Context) {
	if n.due.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	status := n.Status()
	// The status of the next daemon, which may have started already, is kept.
	err := n.write(ctx, time.Now(), v1alpha1.PacemakerNodeStatus{
		NodeName: n.NodeName, Instance: n.Instance, Version: status.Version, Config: status.Config,
		ConfigGeneration: status.ConfigGeneration, Origin: status.Origin, Mode: status.Mode,
		Connection: v1alpha1.Stopped, Message: "the daemon was stopped: pods start unpaced",
	}, n.at)
	if err != nil {
		n.Log.WithError(err).Info("cannot write to this node's PacemakerNode that the daemon was stopped")
	}
}

// write replaces the status, and creates the object if there is none. If only is not nil, it replaces only a status that
// was written at that time.
func (n *Node) write(ctx context.Context, now time.Time, status v1alpha1.PacemakerNodeStatus, only *metav1.Time) error {
	uid := n.NodeUID()
	if uid == "" {
		return errNoNode
	}
	at := metav1.NewTime(now)
	status.Written = &at
	// An object of this name may belong to another node, or to an earlier node of this name that is not collected
	// yet. It is not changed.
	where := map[string]any{"/metadata/ownerReferences/0/uid": uid}
	if only != nil {
		where["/status/written"] = only
	}
	api := n.API.Resource(v1alpha1.NodeResource)
	err := replaceStatus(ctx, api, n.name(), status, where)
	if apierrors.IsNotFound(err) {
		if err := n.create(ctx, api, uid); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		err = replaceStatus(ctx, api, n.name(), status, where)
	}
	switch {
	case err == nil:
		n.at = &at
	case apierrors.IsInvalid(err):
		return fmt.Errorf("PacemakerNode %s belongs to another node, or another daemon has written it: %w", n.name(), err)
	}
	return err
}

func (n *Node) create(ctx context.Context, api dynamic.ResourceInterface, uid types.UID) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.NodeKind))
	object.SetName(n.name())
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.NodeName, UID: uid}})
	_, err := api.Create(ctx, object, metav1.CreateOptions{})
	return err
}

// name returns the name of the object.
func (n *Node) name() string {
	if n.Instance == "" {
		return n.NodeName
	}
	return n.NodeName + "." + n.Instance
}
