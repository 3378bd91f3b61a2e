package policies

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// Namespaces watches the namespaces for a Matcher, from the moment that one of its
// policies needs their labels. Make one with NewNamespaces, and give its Need to the
// Matcher.
type Namespaces struct {
	client kube.Interface
	log    logrus.FieldLogger
	needed chan struct{}
}

// NewNamespaces makes a watch that asks nothing before it is needed. The client needs
// the right to list and watch namespaces then.
func NewNamespaces(client kube.Interface, log logrus.FieldLogger) *Namespaces {
	return &Namespaces{client: client, log: log, needed: make(chan struct{}, 1)}
}

// Need makes Run begin to watch. It does not block.
func (n *Namespaces) Need() {
	select {
	case n.needed <- struct{}{}:
	default:
	}
}

// Run watches for the Matcher, once needed, until ctx ends. It is to be called once. An API server that cannot
// be reached, or refuses, is no reason to return: the Matcher is told what is wrong, and Run keeps trying.
func (n *Namespaces) Run(ctx context.Context, m *Matcher) {
	select {
	case <-n.needed:
	case <-ctx.Done():
		return
	}
	var watch *informer.Informer[*corev1.Namespace]
	watch = informer.New(n.client.Namespaces(), informer.Options[*corev1.Namespace]{
		What: "namespaces", Meanwhile: "the labels that were read last count",
		Client: n.client, Kind: &corev1.Namespace{}, Keep: trim, Log: n.log,
		Changed: func(before, after *corev1.Namespace) {
			if after == nil {
				m.SetNamespace(time.Now(), before.Name, nil)
				return
			}
			m.SetNamespace(time.Now(), after.Name, after.Labels)
		},
		Failed: func(err error) {
			select {
			case <-watch.Synced(): // what was known stays
			default:
				m.SetNamespacesKnown(time.Now(), "the labels of the namespaces cannot be read: "+err.Error())
			}
		},
	})
	var running sync.WaitGroup
	running.Go(func() { watch.Run(ctx) })
	select {
	case <-watch.Synced():
		m.SetNamespacesKnown(time.Now(), "")
	case <-ctx.Done():
	}
	running.Wait()
}

// trim drops all of a namespace but its name, version and labels, which are never nil then.
func trim(object runtime.Object) *corev1.Namespace {
	n, _ := object.(*corev1.Namespace) // the informer checks that
	kept := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels}}
	if kept.Labels == nil {
		kept.Labels = map[string]string{}
	}
	return kept
}
