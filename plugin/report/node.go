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

// lastWords bounds the write with which a daemon says that it was stopped.
const lastWords = 2 * time.Second

var errNoNode = errors.New("the API server has not told of this node yet")

// NodeOptions say what a [Node] reports, and of which node. All are needed. The
// functions are called by Run alone, and must not block.
type NodeOptions struct {
	// API is the way to the API server.
	API dynamic.Interface
	// NodeName is the node's name; Instance is the daemon's, and can be empty.
	NodeName, Instance string
	// NodeUID returns the UID of the Node object, empty while it is not known.
	NodeUID func() types.UID
	// Status returns what is to be told now; NodeName, Instance and Written are
	// filled in.
	Status func() v1alpha1.PacemakerNodeStatus
	// Nodes returns the size of the cluster, 0 while it is not known.
	Nodes func() int
	// Log takes what goes wrong, once.
	Log logrus.FieldLogger
}

// Node writes the PacemakerNode of one daemon.
type Node struct {
	NodeOptions
	faults faultLog

	written *v1alpha1.PacemakerNodeStatus // the last that was; nil: none was, or that is not known
	due     time.Time                     // when it is written though nothing has changed
	at      *metav1.Time                  // of the last that was; nil as for written
}

// NewNode returns a reporter; Run does its work.
func NewNode(o NodeOptions) *Node { return &Node{NodeOptions: o} }

// Run reports until ctx ends, then says that the daemon was stopped. It is to be
// called once. What goes wrong is logged, once, and tried again.
func (n *Node) Run(ctx context.Context) {
	// All daemons of a cluster may have begun at the same moment.
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
			n.faults.tell(n.Log, err, "cannot write this node's PacemakerNode: 'kubectl get pacemakernodes' does not tell of it; trying again",
				"this node's PacemakerNode is written again")
		}
	}
}

// pause is the time until the next try after this many failures.
func pause(least time.Duration, failures int) time.Duration {
	return min(max(least, heartbeat/2), least<<min(failures, 10))
}

// report writes the status if it has changed, or if it is time to show that the
// daemon lives.
func (n *Node) report(ctx context.Context, now time.Time) error {
	status := n.Status()
	status.NodeName, status.Instance = n.NodeName, n.Instance
	status.Written = nil
	if n.written != nil && now.Before(n.due) && equality.Semantic.DeepEqual(*n.written, status) {
		return nil
	}
	n.written, n.at = nil, nil // until it is known to be there
	if err := n.write(ctx, now, status, nil); err != nil {
		return err
	}
	n.written, n.due = &status, now.Add(spread(heartbeat))
	return nil
}

// stop says that the daemon was stopped, if anything was ever told of it.
func (n *Node) stop(ctx context.Context) {
	if n.due.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	status := n.Status()
	// The next daemon may have begun: what it has written stays.
	err := n.write(ctx, time.Now(), v1alpha1.PacemakerNodeStatus{
		NodeName: n.NodeName, Instance: n.Instance, Version: status.Version, Config: status.Config,
		ConfigGeneration: status.ConfigGeneration, Origin: status.Origin, Mode: status.Mode,
		Connection: v1alpha1.Stopped, Message: "the daemon was stopped: pods start unpaced",
	}, n.at)
	if err != nil {
		n.Log.WithError(err).Info("this node's PacemakerNode does not tell that the daemon was stopped")
	}
}

// write replaces the status, if it is the one of that time where one is given, and
// makes the object where there is none.
func (n *Node) write(ctx context.Context, now time.Time, status v1alpha1.PacemakerNodeStatus, only *metav1.Time) error {
	uid := n.NodeUID()
	if uid == "" {
		return errNoNode
	}
	at := metav1.NewTime(now)
	status.Written = &at
	// An object of this name that is of another node, or of this one's
	// predecessor that is about to be collected, is left alone.
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
		return fmt.Errorf("PacemakerNode %s is not of this node, or was written by another daemon: %w", n.name(), err)
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

// name is the name of the object.
func (n *Node) name() string {
	if n.Instance == "" {
		return n.NodeName
	}
	return n.NodeName + "." + n.Instance
}
