package policies

import (
	"context"
	"maps"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// Namespaces watches the labels of namespaces, once they are needed. Make it with NewNamespaces. Its methods are safe
// for concurrent use.
type Namespaces struct {
	informer *informer.Informer[*corev1.Namespace]
	needed   chan struct{}
	// Only the goroutine of Run uses these.
	user     NamespaceUser
	labels   map[string]map[string]string
	complete bool
}

// NewNamespaces returns a watch that asks nothing before it is needed. The client needs
// the right to list and watch namespaces then.
func NewNamespaces(client kube.Interface, log logrus.FieldLogger) *Namespaces {
	n := &Namespaces{needed: make(chan struct{}, 1), labels: map[string]map[string]string{}}
	n.informer = informer.New(client.Namespaces(), informer.Options[*corev1.Namespace]{
		What: "namespaces", Remedy: "set startPolicies.namespaceLabels=true in the chart's values", Client: client, Kind: &corev1.Namespace{}, Keep: trim, Log: log,
		Changed: func(before, after *corev1.Namespace) {
			switch {
			case after == nil:
				delete(n.labels, before.Name)
			case before != nil && maps.Equal(before.Labels, after.Labels):
				return
			default:
				n.labels[after.Name] = after.Labels
			}
			n.report()
		},
		Complete: func() { n.complete = true; n.report() },
	})
	return n
}

// Fault returns why the namespaces cannot be read; nil if they can be, or are not needed. It is safe for concurrent use.
func (n *Namespaces) Fault() *informer.Fault { return n.informer.Fault() }

// report tells the user the labels once all are known.
func (n *Namespaces) report() {
	if n.complete {
		n.user.SetNamespaces(time.Now(), maps.Clone(n.labels))
	}
}

// Need makes Run begin to watch. It does not block.
func (n *Namespaces) Need() {
	select {
	case n.needed <- struct{}{}:
	default:
	}
}

// NamespaceUser uses the labels of namespaces.
type NamespaceUser interface {
	// SetNamespaces gets the labels of all namespaces, by name. It keeps the map, which is not changed afterwards.
	SetNamespaces(now time.Time, labels map[string]map[string]string)
}

// Run waits for Need, and then informs u of all namespaces until ctx ends. Call it once. While the API server
// cannot be reached or refuses, Run keeps trying, and logs the fault.
func (n *Namespaces) Run(ctx context.Context, u NamespaceUser) {
	select {
	case <-n.needed:
	case <-ctx.Done():
		return
	}
	n.user = u
	n.informer.Run(ctx)
}

// trim drops all of a namespace but its name, version and labels.
func trim(object runtime.Object) *corev1.Namespace {
	n, _ := object.(*corev1.Namespace) // the informer checks that
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels}}
}
