package evictions

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// Cause is why kubelet takes a pod down: the reason of the event that it writes then.
type Cause string

const (
	// Eviction is for want of memory, disk or process IDs on the node.
	Eviction Cause = "Evicted"
	// Preemption is for a critical pod that kubelet is to accept, which does not fit beside
	// the pod.
	Preemption Cause = "Preempting"
)

// Believed is how long an event is believed in. A kubelet that was restarted before it
// could write the end of a pod that it takes down starts the pod again.
const Believed = 5 * time.Minute

// Pod is a pod by all of its names: an event may claim any UID, but lies in the namespace
// of the pod that it names.
type Pod struct {
	Namespace, Name, UID string
}

// Watch watches which pods one node's kubelet takes down while there is need to. Make one
// with New. All methods but Run may be called at any time from any goroutine, and do not block.
type Watch struct {
	client  kube.Interface
	node    string
	tell    func(Pod, Cause)
	log     logrus.FieldLogger
	reach   *informer.Reach
	changed chan struct{} // holds at most one: other namespaces may have to be watched

	mu       sync.Mutex
	pressed  bool
	critical unaccepted
	waiting  map[string]*waiters // by namespace
	watching map[target]*namespaceWatch
}

// target is what one watch watches.
type target struct {
	namespace string
	cause     Cause
}

// New makes a watch that asks nothing yet. The client needs the right to list and watch
// events in all namespaces, from the first need on while pods wait. tell is called for
// every pod that the kubelet of the named node takes down, soon after that, once at least.
// It is called from several goroutines, and should not block.
func New(client kube.Interface, node string, log logrus.FieldLogger, tell func(Pod, Cause)) *Watch {
	return &Watch{
		client: client, node: node, tell: tell, log: log,
		reach: &informer.Reach{
			What: "the events of evictions and preemptions", Log: log,
			Right:     ", for want of the right to list and watch events (evictions.watch of the chart brings it)",
			Meanwhile: "kubelet's end of a pod that waits in the gate lasts until that wait is over, or kubelet gives up",
		},
		changed:  make(chan struct{}, 1),
		critical: unaccepted{since: map[string]time.Time{}},
		waiting:  map[string]*waiters{}, watching: map[target]*namespaceWatch{},
	}
}

// TakenDown tells whether kubelet takes a pod down, and why, as far as that is known: its
// namespace must have been watched already.
func (w *Watch) TakenDown(pod Pod) (Cause, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cause := range []Cause{Eviction, Preemption} {
		one := w.watching[target{pod.Namespace, cause}]
		if one == nil {
			continue
		}
		if at, known := one.seen[pod]; known && time.Since(at) < Believed {
			return cause, true
		}
	}
	return "", false
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
	causes, next := w.causesLocked(now)
	needed := map[target]bool{}
	for namespace, all := range w.waiting {
		if all.count == 0 {
			if len(causes) == 0 || !now.Before(all.until) {
				delete(w.waiting, namespace)
				continue
			}
			next = sooner(next, all.until)
		}
		for _, cause := range causes {
			needed[target{namespace, cause}] = namespace != metav1.NamespaceAll
		}
	}
	for this, one := range w.watching {
		if !needed[this] {
			one.stop()
			delete(w.watching, this)
		}
	}
	for this, is := range needed {
		if is && w.watching[this] == nil {
			one := newNamespaceWatch(ctx, this)
			w.watching[this] = one
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
