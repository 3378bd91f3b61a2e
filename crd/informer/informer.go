// Package informer follows the objects of one kind in the API server. It logs an outage once, not at
// every attempt, and logs when it is over.
//
// It lists the objects and watches them from the version of the list. Only a watch that lasted its time is followed by
// another one from the last version. After everything else it lists again: if etcd was restored from an older copy, a
// watch from the last version is silent until etcd has made as many versions anew (kubernetes#107457, #118501), whereas
// a list shows what there is. client-go's reflector goes on from the last version. It also reads a list as a whole if
// the API server does not stream it; this package drops most of each object before it reads the next one.
package informer

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/utils/clock"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// Options configure an [Informer]. Complete, Refused, Only, ListOnly, Over and Remedy are optional.
type Options[T metav1.Object] struct {
	// What names the objects in the log, in the plural.
	What string
	// Remedy is what to do where the watch is forbidden, for the log. Empty means: give the daemon its roles.
	Remedy string
	// Client is the client that the api of New belongs to. If it is one of client-go's fakes, which cannot stream a list,
	// the informer does not ask for that.
	Client any
	// Only is a field selector of the objects. If it is empty, all are followed.
	Only string
	// ListOnly is another field selector of the objects, for lists alone. Those that it leaves out must be Over.
	ListOnly string
	// Kind is an empty object of the kind.
	Kind runtime.Object
	// Keep returns what is kept of an object: at least its namespace, name and resource version.
	Keep func(runtime.Object) T
	// Over reports that an object will not change any more. The informer forgets it after Changed. Of its deletion,
	// Changed is called all the same.
	Over func(T) bool
	// Changed is called in the order of the changes for each object that is new (before is nil), changed, or
	// deleted (after is nil), and for every object after each list. It should not block: later changes wait.
	Changed func(before, after T)
	// Complete is called once, when Changed was called for every object of the first list. Later changes wait.
	Complete func()
	// Refused is called when the API server has answered for some seconds that it does not serve these custom resources, or
	// forbids this client to read the objects.
	Refused func()
	// Log receives each fault once.
	Log logrus.FieldLogger
}

// Informer follows the objects of one kind. Make one with [New]. Its methods are safe for concurrent use, and
// only Run blocks.
type Informer[T metav1.Object] struct {
	options Options[T]
	api     kube.Follow

	// Only the goroutine of Run uses these.
	known   map[cache.ObjectName]T
	version string // up to which the objects are known; empty if they are not

	relist  atomic.Pointer[context.CancelFunc] // ends what Run does now; nil before Run
	current atomic.Bool
	lost    atomic.Pointer[time.Time] // when current last became false; nil if it never was true
	listed  atomic.Bool
	fault   atomic.Pointer[Fault] // nil if there is none
}

// New returns an informer of the objects that api serves. Run does its work.
func New[T metav1.Object](api kube.Follow, o Options[T]) *Informer[T] {
	if o.Over == nil {
		o.Over = func(T) bool { return false }
	}
	return &Informer[T]{options: o, api: api, known: map[cache.ObjectName]T{}}
}

const (
	// leastWatch is how long a watch lasts at least. It lasts twice as long at most, so that the watches of many nodes do
	// not end at the same moment. A watch whose end differs by more than clockError has not lasted its time.
	leastWatch = 5 * time.Minute
	clockError = 5 * time.Second
	// streamWithin is how long a streamed list may take.
	streamWithin = time.Minute
	// calm is the time after which tries start again from the first. It counts from when they did so last, also while they
	// fail.
	calm = 2 * time.Minute
)

// tries are the pauses after failures, as client-go's reflector makes them.
var tries = wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6, Cap: 30 * time.Second}

// Run follows the objects until ctx ends. Call it once.
func (i *Informer[T]) Run(ctx context.Context) {
	for ctx.Err() == nil {
		one, end := context.WithCancel(ctx)
		i.relist.Store(&end)
		_ = tries.DelayWithReset(clock.RealClock{}, calm).Until(one, true, true, func(ctx context.Context) (bool, error) {
			i.fail(ctx, i.follow(ctx))
			return false, nil
		}) // the error says only that ctx has ended
		end()
	}
	i.current.Store(false)
}

// Relist makes Run list all objects again now.
func (i *Informer[T]) Relist() {
	if relist := i.relist.Load(); relist != nil {
		(*relist)() // if Run has just begun anew, that lists, too
	}
}

// follow lists the objects and watches them until that fails or ctx ends.
func (i *Informer[T]) follow(ctx context.Context) error {
	err := i.list(ctx)
	for err == nil {
		err = i.watch(ctx)
	}
	return err
}

// list lists the objects, and forgets those that no longer exist.
func (i *Informer[T]) list(ctx context.Context) error {
	there := map[cache.ObjectName]bool{}
	put := func(o runtime.Object) { there[i.put(o)] = true }
	version, err := i.stream(ctx, put)
	if apierrors.IsInvalid(err) || errors.Is(err, errEnd) { // the API server cannot stream lists, or a proxy ends the stream
		clear(there)
		version, err = i.plain(ctx, put)
	}
	if err != nil {
		return err
	}
	i.version = version
	for name, last := range i.known {
		if !there[name] {
			i.forget(last)
		}
	}
	if first := !i.listed.Swap(true); first && i.options.Complete != nil {
		i.options.Complete()
	}
	return nil
}

// stream reads the newest list, one object after the other, and returns its version.
func (i *Informer[T]) stream(ctx context.Context, put func(runtime.Object)) (version string, err error) {
	if watchlist.DoesClientNotSupportWatchListSemantics(i.options.Client) {
		return "", apierrors.NewInvalid(schema.GroupKind{}, "", nil)
	}
	yes := true
	err = i.receive(ctx, streamWithin, metav1.ListOptions{
		FieldSelector: i.selectListed(), SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}, func() {}, func(e watch.Event, o metav1.Object) (last bool) {
		switch e.Type {
		case watch.Bookmark:
			version = o.GetResourceVersion()
			return o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
		case watch.Deleted:
			i.forget(i.options.Keep(e.Object))
		default:
			put(e.Object)
		}
		return false
	})
	return version, err
}

// plain reads a list that is not streamed, and returns its version. From a version, the API server answers from its
// memory. It has no such version if etcd was restored from an older copy.
func (i *Informer[T]) plain(ctx context.Context, put func(runtime.Object)) (version string, err error) {
	lo := metav1.ListOptions{FieldSelector: i.selectListed(), ResourceVersion: cmp.Or(i.version, "0")}
	version, err = i.api.Each(ctx, lo, put)
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		lo.ResourceVersion = ""
		version, err = i.api.Each(ctx, lo, put)
	}
	return version, err
}

// selectListed returns the field selector of a list.
func (i *Informer[T]) selectListed() string {
	return strings.Trim(i.options.Only+","+i.options.ListOnly, ",")
}

// errBroken reports that a watch ended before its time.
var errBroken = errors.New("the watch broke off")

// watch follows the changes until the watch ends. It returns nil if that was at its time.
func (i *Informer[T]) watch(ctx context.Context) error {
	lasts, began, connected := leastWatch+rand.N(leastWatch).Truncate(time.Second), time.Now(), false
	err := i.receive(ctx, lasts, metav1.ListOptions{FieldSelector: i.options.Only, ResourceVersion: i.version}, func() {
		connected = true
		i.works()
	}, func(e watch.Event, o metav1.Object) (last bool) {
		switch e.Type {
		case watch.Bookmark:
		case watch.Deleted:
			i.forget(i.options.Keep(e.Object))
		default:
			i.put(e.Object)
		}
		i.version = o.GetResourceVersion()
		return false
	})
	switch late := time.Since(began) - lasts; {
	case !connected:
		return err
	case errors.Is(err, errEnd) && late.Abs() < clockError:
		return nil
	default:
		return errBroken // the list that follows says what is wrong, if anything is
	}
}

// errEnd reports that the API server ended a watch.
var errEnd = errors.New("the watch ended")

// receive watches for the time lasts, and calls opened once it is connected and f for each event, until f returns true.
func (i *Informer[T]) receive(ctx context.Context, lasts time.Duration, lo metav1.ListOptions, opened func(), f func(watch.Event, metav1.Object) (last bool)) error {
	seconds := int64(lasts / time.Second)
	lo.AllowWatchBookmarks, lo.TimeoutSeconds = true, &seconds
	w, err := i.api.Watch(ctx, lo)
	if err != nil {
		return err
	}
	defer w.Stop()
	opened()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.ResultChan():
			switch {
			case !ok:
				return errEnd
			case e.Type == watch.Error:
				return apierrors.FromObject(e.Object)
			case reflect.TypeOf(e.Object) != reflect.TypeOf(i.options.Kind):
				continue
			}
			if o, err := meta.Accessor(e.Object); err != nil || f(e, o) {
				return err
			}
		}
	}
}

// put reports an object that is new or has changed, and returns its name.
func (i *Informer[T]) put(o runtime.Object) cache.ObjectName {
	after := i.options.Keep(o)
	name := cache.MetaObjectToName(after)
	before := i.known[name]
	i.known[name] = after
	if i.options.Over(after) {
		delete(i.known, name)
	}
	i.options.Changed(before, after)
	return name
}

// forget reports a deleted object, with its last state.
func (i *Informer[T]) forget(last T) {
	name := cache.MetaObjectToName(last)
	if _, known := i.known[name]; known || i.options.Over(last) {
		delete(i.known, name)
		var none T
		i.options.Changed(last, none)
	}
}
