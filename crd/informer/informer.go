// Package informer follows the objects of one kind in the API server. It logs once, and not at every
// try, that the API server does not serve them, and once that it does again.
//
// It uses client-go's reflector without its informers, which keep each object a second time.
package informer

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// Options say what an [Informer] follows and what it calls. Refused, Failed, Meanwhile and Only may be absent.
type Options[T metav1.Object] struct {
	// What names the objects in the log: a plural.
	What string
	// Meanwhile says in the log what counts while the objects cannot be watched. Empty: what is in force stays.
	Meanwhile string
	// Client decides whether the first list is streamed: a fake of client-go cannot do that.
	Client any
	// Only selects objects by a field; nil: all.
	Only fields.Selector
	// Kind is an empty API object of the kind.
	Kind runtime.Object
	// Keep returns what is kept of an API object: its namespace, name and version at least. It may be called
	// more than once for an object.
	Keep func(runtime.Object) T
	// Changed is called for each object that is new (before is nil), changed, or deleted (after is nil), in the
	// order of the changes, and after each list for all objects. It should not block: later changes wait.
	Changed func(before, after T)
	// Refused is called when the API server answers that it does not serve the objects, or not to this client.
	Refused func()
	// Failed is called with every failure to list or watch. The end of the context is none, nor is a
	// version that is too old, after which the objects are listed again.
	Failed func(error)
	// Log takes what goes wrong, once.
	Log logrus.FieldLogger
}

// Informer keeps the objects of one kind up to date. Make one with New. Its methods are safe for concurrent
// use, and do not block but for Run.
type Informer[T metav1.Object] struct {
	health

	options Options[T]
	api     cache.ListerWatcher
	synced  chan struct{}
	known   map[types.NamespacedName]T // only the goroutine of Run uses it

	next    sync.Mutex
	end     context.CancelFunc // ends the reflector that runs now
	version string             // the next list must not be older; empty: it may be
}

// New returns an informer of the objects that api serves; Run does its work.
func New[T metav1.Object, L runtime.Object](api kube.Follow[L], o Options[T]) *Informer[T] {
	i := &Informer[T]{
		health:  health{what: o.What, meanwhile: o.Meanwhile, refused: o.Refused, failed: o.Failed, log: o.Log, err: ErrNotSynced},
		options: o, synced: make(chan struct{}), known: map[types.NamespacedName]T{}, end: func() {},
	}
	i.api = cache.ToListWatcherWithWatchListSemantics(endable(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, lo metav1.ListOptions) (runtime.Object, error) {
			i.beginList(&lo, false)
			list, err := api.List(ctx, lo)
			if err != nil {
				i.fail(ctx, err)
				i.startAt("")
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, lo metav1.ListOptions) (watch.Interface, error) {
			lists := lo.SendInitialEvents != nil && *lo.SendInitialEvents
			if lists {
				i.beginList(&lo, true)
			} else {
				i.selectOnly(&lo)
			}
			w, err := api.Watch(ctx, lo)
			if err != nil {
				if !fallsBack(lo, err) {
					i.fail(ctx, err)
					i.startAt("")
				}
				return nil, err
			}
			if !lists {
				i.works()
			}
			return i.stream(ctx, w), nil
		},
	}), o.Client)
	return i
}

func (i *Informer[T]) selectOnly(lo *metav1.ListOptions) {
	if i.options.Only != nil {
		lo.FieldSelector = i.options.Only.String()
	}
}

// beginList notes that a list begins, and asks for one that is as new as needed. The version of the last
// reflector makes sure that the list does not go back in time, and lets the API server answer it from memory.
// While what the API server has in memory is in doubt, the list comes from its store.
func (i *Informer[T]) beginList(lo *metav1.ListOptions, streams bool) {
	i.selectOnly(lo)
	i.next.Lock()
	version := i.version
	i.next.Unlock()
	switch {
	case i.begins(streams):
		lo.ResourceVersion = ""
		if !streams {
			lo.ResourceVersionMatch = ""
		}
	case version != "":
		lo.ResourceVersion = version
	}
}

// startAt sets the version that the next list must not be older than.
func (i *Informer[T]) startAt(version string) {
	i.next.Lock()
	defer i.next.Unlock()
	i.version = version
}

// tries are the pauses between two attempts to list, as a reflector of client-go has them; calm is how long a
// watch has to last for the next attempt to follow soon.
var tries = wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6, Cap: 30 * time.Second}

const calm = 2 * time.Minute

// Run follows the objects until ctx ends. It is to be called once.
func (i *Informer[T]) Run(ctx context.Context) {
	// What client-go logs is for debugging: health logs what matters, once.
	debug := funcr.New(func(prefix, args string) { i.log.Debug(prefix, " ", args) }, funcr.Options{})
	ctx = klog.NewContext(ctx, debug)
	for ctx.Err() == nil {
		one, end := context.WithCancel(ctx)
		i.next.Lock()
		i.end = end
		i.next.Unlock()
		r := cache.NewReflectorWithOptions(i.api, i.options.Kind, store[T]{i}, cache.ReflectorOptions{Logger: &debug, Name: i.what})
		listAndWatch(one, r)
		end()
		i.startAt(r.LastSyncResourceVersion())
	}
	i.stopped()
}

// listAndWatch tries again until ctx ends. Reflector.RunWithContext would do it with a handler of errors that cannot be
// replaced, and that makes all reflectors of the process wait for each other.
func listAndWatch(ctx context.Context, r *cache.Reflector) {
	pause := tries.DelayFunc()
	for ctx.Err() == nil {
		began := time.Now()
		_ = r.ListAndWatchWithContext(ctx) // health knows it
		if time.Since(began) > calm {
			pause = tries.DelayFunc()
		}
		select {
		case <-time.After(pause()):
		case <-ctx.Done():
		}
	}
}

// Relist makes Run list all objects again now, also those that have not changed.
func (i *Informer[T]) Relist() {
	i.next.Lock()
	defer i.next.Unlock()
	i.end()
}

// Synced returns a channel that is closed once Changed was called for all objects of the first list.
func (i *Informer[T]) Synced() <-chan struct{} { return i.synced }

// store is where the reflector puts objects. Only the goroutine of Run calls it.
type store[T metav1.Object] struct{ *Informer[T] }

var _ cache.TransformingStore = store[metav1.Object]{}

// Transformer implements cache.TransformingStore, so that a streamed list needs no memory for API objects.
func (s store[T]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.kept(object), nil }
}

// kept returns what is kept of an object, which may be that already.
func (s store[T]) kept(object any) T {
	if o, ok := object.(runtime.Object); ok {
		return s.options.Keep(o)
	}
	kept, _ := object.(T) // nothing else gets here
	return kept
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Add implements cache.ReflectorStore.
func (s store[T]) Add(object any) error {
	after := s.kept(object)
	before := s.known[nameOf(after)]
	s.known[nameOf(after)] = after
	s.options.Changed(before, after)
	return nil
}

// Update implements cache.ReflectorStore.
func (s store[T]) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s store[T]) Delete(object any) error {
	s.forget(nameOf(s.kept(object)), s.kept(object))
	return nil
}

// forget tells of a deleted object, with its last state.
func (s store[T]) forget(name types.NamespacedName, last T) {
	if _, known := s.known[name]; known {
		delete(s.known, name)
		var none T
		s.options.Changed(last, none)
	}
}

// Replace implements cache.ReflectorStore: the objects are all that there are.
func (s store[T]) Replace(objects []any, _ string) error {
	there := make(map[types.NamespacedName]bool, len(objects))
	for _, object := range objects {
		kept := s.kept(object)
		there[nameOf(kept)] = true
		_ = s.Add(kept) // it gives no error
	}
	for name, last := range s.known {
		if !there[name] {
			s.forget(name, last)
		}
	}
	s.startAt("")
	s.listed()
	select {
	case <-s.synced:
	default:
		close(s.synced)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (s store[T]) Resync() error { return nil }
