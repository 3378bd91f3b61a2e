// Package informer follows the objects of one kind in the API server. It logs an outage once, not at
// every attempt, and logs when it is over.
//
// It uses client-go's reflector without client-go's informers, which would keep each object a second time.
package informer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/pod-pacemaker/pod-pacemaker/crd/faultlog"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// Options configure an [Informer]. Complete, Refused, Only and Remedy are optional.
type Options[T metav1.Object] struct {
	// What names the objects in the log, in the plural.
	What string
	// Remedy is what to do where the watch is forbidden, for the log. Empty: give the daemon its roles.
	Remedy string
	// Client is the client of which the api of New is a part. client-go asks it whether a list can be streamed
	// (WatchList): its fakes cannot stream.
	Client any
	// Only is a field selector of the objects. Empty: all.
	Only string
	// Kind is an empty object of the kind.
	Kind runtime.Object
	// Keep returns what is kept of an object: at least its namespace, name and resource version. It may be
	// called more than once for an object.
	Keep func(runtime.Object) T
	// Changed is called in the order of the changes for each object that is new (before is nil), changed, or
	// deleted (after is nil), and for every object after each list. It should not block: later changes wait.
	Changed func(before, after T)
	// Complete is called once, when Changed was called for every object of the first list. Later changes wait.
	Complete func()
	// Refused is called when the API server answers that it does not serve the objects, or forbids this client
	// to read them.
	Refused func()
	// Log receives each fault once.
	Log logrus.FieldLogger
}

// Informer follows the objects of one kind. Make one with [New]. Its methods are safe for concurrent use, and
// only Run blocks.
type Informer[T metav1.Object] struct {
	options Options[T]
	api     cache.ListerWatcher
	faults  faultlog.Log

	// Only the goroutine of Run uses these.
	known    map[cache.ObjectName]T
	complete bool // Complete was called

	mu        sync.Mutex
	end       context.CancelFunc // ends the reflector that runs now
	version   string             // the next list must not be older than this; empty: any
	connected bool               // the last request succeeded, and a watch is connected
	distrust  bool               // Distrust was called, and no list is complete since
	began     time.Time          // when the last list began
	streams   bool               // that list is the first part of a watch
	completed time.Time          // when the last complete list began
}

// New returns an informer of the objects that api serves. Run does its work.
func New[T metav1.Object, L runtime.Object](api kube.Follow[L], o Options[T]) *Informer[T] {
	i := &Informer[T]{options: o, known: map[cache.ObjectName]T{}, end: func() {}}
	i.api = cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, lo metav1.ListOptions) (runtime.Object, error) {
			lo.FieldSelector = o.Only
			i.beginList(&lo, false)
			list, err := api.List(ctx, lo)
			if err != nil {
				i.fail(ctx, err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, lo metav1.ListOptions) (watch.Interface, error) {
			lists := lo.SendInitialEvents != nil && *lo.SendInitialEvents
			lo.FieldSelector = o.Only
			if lists {
				i.beginList(&lo, true)
			}
			w, err := api.Watch(ctx, lo)
			if err != nil {
				if !lists || !apierrors.IsInvalid(err) { // a server that cannot stream the list is asked for a plain one
					i.fail(ctx, err)
				}
				if lists && utilnet.IsConnectionRefused(err) {
					// At this error a reflector sleeps for up to half a minute, and the end of its context does not
					// wake it. After any other error it lists, which is refused too, and Run ends with its context.
					err = errors.New(err.Error())
				}
				return nil, err
			}
			if !lists {
				i.works()
			}
			return w, nil
		},
	}, o.Client)
	return i
}

// beginList records that a list begins, and sets in lo how new the list must be. With the version of the last
// reflector, the list does not go back in time, and the API server can answer from memory. After Distrust, the
// list comes from the API server's store.
func (i *Informer[T]) beginList(lo *metav1.ListOptions, streams bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.began, i.streams = time.Now(), streams
	switch {
	case i.distrust:
		lo.ResourceVersion = ""
		if !streams {
			lo.ResourceVersionMatch = ""
		}
	case i.version != "":
		lo.ResourceVersion = i.version
	}
}

// tries are the pauses between two attempts to list, and calm is the time without one after which they start again
// from the first. Both are those of client-go's reflector.
var tries = wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6, Cap: 30 * time.Second}

const calm = 2 * time.Minute

// Run follows the objects until ctx ends. Call it once.
func (i *Informer[T]) Run(ctx context.Context) {
	// client-go logs at debug level here, because fail logs each fault once.
	debug := funcr.New(func(prefix, args string) { i.options.Log.Debug(prefix, " ", args) }, funcr.Options{})
	ctx = klog.NewContext(ctx, debug)
	for ctx.Err() == nil {
		one, end := context.WithCancel(ctx)
		i.mu.Lock()
		i.end = end
		i.mu.Unlock()
		r := cache.NewReflectorWithOptions(i.api, i.options.Kind, store[T]{i}, cache.ReflectorOptions{Logger: &debug, Name: i.options.What})
		listAndWatch(one, r)
		end()
		version := r.LastSyncResourceVersion()
		i.mu.Lock()
		i.version = version
		i.mu.Unlock()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.connected = false
}

// listAndWatch runs r until ctx ends, and pauses after each failure. Reflector.RunWithContext would do the same, but
// its error handler cannot be replaced, and makes all reflectors of the process wait for each other.
func listAndWatch(ctx context.Context, r *cache.Reflector) {
	_ = tries.DelayWithReset(clock.RealClock{}, calm).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		_ = r.ListAndWatchWithContext(ctx) // fail has recorded the error
		return false, nil
	}) // the error is that of ctx
}

// Relist makes Run list all objects again now.
func (i *Informer[T]) Relist() {
	i.mu.Lock()
	end := i.end
	i.mu.Unlock()
	end() // a reflector that began meanwhile lists, too
}

// store receives objects from the reflector. Only the goroutine of Run calls it.
type store[T metav1.Object] struct{ *Informer[T] }

var _ cache.TransformingStore = store[metav1.Object]{}

// Transformer implements cache.TransformingStore, so that a streamed list does not hold whole API objects.
func (s store[T]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.kept(object), nil }
}

// kept returns what is kept of an object. The object may have been through Keep already.
func (s store[T]) kept(object any) T {
	if o, ok := object.(runtime.Object); ok {
		return s.options.Keep(o)
	}
	kept, _ := object.(T) // no other type gets here
	return kept
}

// Add implements cache.ReflectorStore.
func (s store[T]) Add(object any) error {
	after := s.kept(object)
	before := s.known[cache.MetaObjectToName(after)]
	s.known[cache.MetaObjectToName(after)] = after
	s.options.Changed(before, after)
	return nil
}

// Update implements cache.ReflectorStore.
func (s store[T]) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s store[T]) Delete(object any) error {
	s.forget(s.kept(object))
	return nil
}

// forget reports a deleted object, with its last state.
func (s store[T]) forget(last T) {
	name := cache.MetaObjectToName(last)
	if _, known := s.known[name]; known {
		delete(s.known, name)
		var none T
		s.options.Changed(last, none)
	}
}

// Replace implements cache.ReflectorStore. It gets all objects that exist.
func (s store[T]) Replace(objects []any, _ string) error {
	there := make(map[cache.ObjectName]bool, len(objects))
	for _, object := range objects {
		kept := s.kept(object)
		there[cache.MetaObjectToName(kept)] = true
		_ = s.Add(kept) // never fails
	}
	for name, last := range s.known {
		if !there[name] {
			s.forget(last)
		}
	}
	s.listed()
	if !s.complete && s.options.Complete != nil {
		s.options.Complete()
	}
	s.complete = true
	return nil
}

// Resync implements cache.ReflectorStore.
func (s store[T]) Resync() error { return nil }
