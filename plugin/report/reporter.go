package report

import (
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd/faultlog"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Options are the options of a [Reporter]. All are needed except Instance.
type Options struct {
	// API is a client for the custom resources. Leases is one for the Leases of the daemon's namespace.
	API    dynamic.Interface
	Leases kube.Leases
	// NodeName is the node's name. Instance is the daemon's name. Only the reports of daemons with the same Instance
	// are summed up.
	NodeName, Instance string
	// Object is the name of the PacemakerNode of this daemon. Lease is the name of the Lease by which the daemons of
	// this instance take turns.
	Object, Lease string
	// Log gets each error once.
	Log logrus.FieldLogger
}

// Reporter writes the PacemakerNode of one daemon with RunNode. With RunSummary, it takes turns with the daemons of the
// other nodes to sum up all PacemakerNodes. Make one with New.
type Reporter struct {
	Options
	nodes    atomic.Int64                // 0 if unknown
	summing  time.Time                   // when RunSummary began
	reported atomic.Pointer[metav1.Time] // when RunNode last wrote the PacemakerNode, by the API server's clock; nil until then

	// Only RunNode uses these.
	nodeFaults faultlog.Log
	conditions []metav1.Condition            // as last reported; not changed in place
	written    *v1alpha1.PacemakerNodeStatus // the last written status; nil if there is none, or if that is unknown
	owner      types.UID                     // of the Node that owns the object in which written is
	due        time.Time                     // of the next heartbeat
	at         *metav1.Time                  // when a write last succeeded, in the status; nil until then

	// Only RunSummary uses these.
	sumFaults faultlog.Log
	begun     bool      // this daemon has summed up
	seen      string    // the renew time in the Lease
	seenAt    time.Time // when this daemon first saw it
}

// New returns a Reporter. RunNode and RunSummary do its work.
func New(o Options) *Reporter { return &Reporter{Options: o} }

// Nodes returns the number of nodes whose daemons report, according to the last sum: at least 1, and at most 50,000. While
// it is not known, Nodes returns 1,000. It does not block, and is safe for concurrent use.
func (r *Reporter) Nodes() int {
	if r.known() {
		return int(r.nodes.Load())
	}
	return nodesUnknown
}

func (r *Reporter) known() bool { return r.nodes.Load() > 0 }

func (r *Reporter) setNodes(n int) { r.nodes.Store(int64(min(max(n, 0), mostNodes))) }
