// Package podwatch follows the pods of one node in the API server: their identity, and how far their start is.
//
// It knows each pod by the uid that NRI uses. It keeps less than 2 KiB of most pods, never more than 32 KiB, and nothing of
// those that have ended.
package podwatch

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// Watch follows the pods of one node. Make it with [New]. Its methods are safe for concurrent use, and only Run and
// Await block.
type Watch struct {
	options  Options
	informer *informer.Informer[*cached]
	trim     func(*corev1.Pod) Pod
	changed  func(pod Pod, deleted bool) // see OnChange

	mu        sync.Mutex
	facts     extractor
	relisting *time.Timer        // lists the pods again; nil if that is not due
	relistAt  time.Time          // when it does
	pods      map[string]*cached // by NRI uid
	added     chan struct{}      // closed with the next pod that becomes known
}

// Options are the parts of a [Watch]. All are required.
type Options struct {
	// Client must be allowed to list and watch pods in all namespaces.
	Client kube.Interface
	// NodeName is the node's name.
	NodeName string
	// OnPanic is called in the goroutine of every panic that is caught while a pod is read, with the name of the part and
	// what the panic is about, for the log.
	OnPanic func(part string, fault any, fields logrus.Fields)
	Log     logrus.FieldLogger
}

// notTerminal selects the pods whose Terminal is false. A node may have thousands of others. They are not listed, and
// the watch reports the end of each pod.
var notTerminal = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)), fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
).String()

// New returns a Watch. It sends no requests before Run.
func New(o Options) *Watch {
	w := &Watch{
		options: o, trim: trim, pods: map[string]*cached{}, added: make(chan struct{})}
	w.informer = informer.New(o.Client.Pods(metav1.NamespaceAll), informer.Options[*cached]{
		What: "the pods of this node", Client: o.Client, Only: fields.OneTermEqualSelector("spec.nodeName", o.NodeName).String(), Kind: &corev1.Pod{},
		ListOnly: notTerminal, Over: func(c *cached) bool { return c.pod.Terminal() },
		Keep: w.keep, Changed: w.change, Log: o.Log,
	})
	return w
}

// OnChange makes Run call change for each pod that appears or changes, with deleted false, and for each that the API server
// no longer has, with deleted true and its last known state. A pod that has ended is reported once more, and then no
// longer known. Its deletion is reported unless the API server is away then. For a pod that was replaced by a new pod
// of that name, change is called with deleted true before it is called for the new one. A deleted static pod lost only its
// mirror pod, which kubelet makes again while the pod lives.
//
// Calls come in the order of the changes, after Get knows of the change. They should not block: later changes wait, also
// for Get and Await. They must not panic. Call OnChange once, before Run.
func (w *Watch) OnChange(change func(pod Pod, deleted bool)) { w.changed = change }

// Run follows the pods until ctx ends. Call it once. While the API server cannot be reached or refuses, Run keeps
// trying, and logs the fault.
func (w *Watch) Run(ctx context.Context) { w.informer.Run(ctx) }
