package evictions

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
)

// Believed is how long an eviction is believed in. A kubelet that was restarted before it
// could write the end of a pod that it evicts starts the pod again.
const Believed = 5 * time.Minute

// lingers is how long a namespace is watched on after the last pod there has ceased to
// wait: the next often comes soon, and every watch begins with a list.
const lingers = 30 * time.Second

// Pod is a pod by all of its names: an event may claim any UID, but lies in the namespace
// of the pod that it names.
type Pod struct {
	Namespace, Name, UID string
}

// Watch watches the evictions by one node's kubelet while there is need to. Make one with
// New. All methods but Run may be called at any time from any goroutine, and do not block.
type Watch struct {
	client  kubernetes.Interface
	node    string
	tell    func(Pod)
	log     logrus.FieldLogger
	reach   *informer.Reach
	changed chan struct{} // holds at most one: other namespaces may have to be watched

	mu       sync.Mutex
	pressed  bool
	waiting  map[string]*waiters        // by namespace
	watching map[string]*namespaceWatch // by namespace
}

// waiters are the pods of a namespace that wait.
type waiters struct {
	count int
	until time.Time // when the namespace is watched no longer; while count is 0
}

// New makes a watch that asks nothing yet. The client needs the right to list and watch
// events in all namespaces, from the first pressure on while pods wait. tell is called for
// every pod that the kubelet of the named node evicts, soon after that, once at least. It is
// called from several goroutines, and should not block.
func New(client kubernetes.Interface, node string, log logrus.FieldLogger, tell func(Pod)) *Watch {
	return &Watch{
		client: client, node: node, tell: tell, log: log,
		reach: &informer.Reach{
			What: "the events of evictions", Log: log,
			Right:     ", for want of the right to list and watch events (evictions.watch of the chart brings it)",
			Meanwhile: "kubelet's eviction of a pod that waits in the gate lasts until that wait is over, or kubelet gives up",
		},
		changed: make(chan struct{}, 1),
		waiting: map[string]*waiters{}, watching: map[string]*namespaceWatch{},
	}
}

// SetPressure takes over whether kubelet says that the node runs short of something.
func (w *Watch) SetPressure(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pressed = on
	w.wakeLocked()
}

// Enter takes note that a pod of the namespace begins to wait, or one more of its
// containers does. Without a namespace, nothing is watched.
func (w *Watch) Enter(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.waiting[namespace]
	if all == nil {
		all = &waiters{}
		w.waiting[namespace] = all
	}
	all.count++
	w.wakeLocked()
}

// Leave is called once for every Enter, when that wait is over.
func (w *Watch) Leave(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.waiting[namespace]
	if all.count--; all.count > 0 {
		return
	}
	if !w.pressed {
		delete(w.waiting, namespace)
		return
	}
	all.until = time.Now().Add(lingers)
	w.wakeLocked()
}

// Evicted tells whether kubelet evicts a pod, as far as that is known: its namespace must
// have been watched already.
func (w *Watch) Evicted(pod Pod) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.watching[pod.Namespace]
	if one == nil {
		return false
	}
	at, known := one.seen[pod]
	return known && time.Since(at) < Believed
}

// Run watches until ctx ends, then returns nil. An API server that cannot be reached, or
// refuses, is no reason to return: Run keeps trying, and the log says it once. It must not
// be called again before it has returned.
func (w *Watch) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer w.stopAll()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.changed:
		case <-timer.C:
		}
		begins, next := w.follow(ctx, time.Now())
		for _, one := range begins {
			running.Go(func() { w.run(one) })
		}
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// follow ends the watches that are needed no longer, and gives those that are to begin,
// and the time at which to look again; zero: when something has changed.
func (w *Watch) follow(ctx context.Context, now time.Time) (begins []*namespaceWatch, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	needed := map[string]bool{}
	for namespace, all := range w.waiting {
		switch {
		case all.count > 0:
			needed[namespace] = w.pressed
		case !w.pressed || !now.Before(all.until):
			delete(w.waiting, namespace)
		default:
			needed[namespace] = true
			if next.IsZero() || all.until.Before(next) {
				next = all.until
			}
		}
	}
	for namespace, one := range w.watching {
		if !needed[namespace] {
			one.stop()
			delete(w.watching, namespace)
		}
	}
	delete(needed, metav1.NamespaceAll)
	for namespace, is := range needed {
		if is && w.watching[namespace] == nil {
			one := newNamespaceWatch(ctx, namespace)
			w.watching[namespace] = one
			begins = append(begins, one)
		}
	}
	return begins, next
}

func (w *Watch) stopAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.watching {
		one.stop()
	}
	clear(w.watching)
}

// wakeLocked has Run look at what is to be watched.
func (w *Watch) wakeLocked() {
	select {
	case w.changed <- struct{}{}:
	default: // it will
	}
}
