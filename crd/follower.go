package crd

import (
	"context"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// kind is what a follower has to know of a custom resource whose type is T.
type kind[T any] struct {
	name, plural string
	logged       string // the field of the log that names an object
	resource     schema.GroupVersionResource
	validate     func(*T) field.ErrorList
	about        func(*T) about
}

// about is what all kinds have that are followed.
type about struct {
	*metav1.ObjectMeta
	instance     string
	nodeSelector map[string]v1alpha1.LabelValue
	spec         any
}

// follower follows the objects of one kind that are for the instance of this daemon and
// select its node. Of an object that becomes invalid, the last good version stays; one that
// was never valid counts as absent. While the API server is away, or does not know the kind,
// everything stays as it is. Each of these is logged once, not at every try. A field
// that this version does not know is logged and left out, so that new objects do not stop old
// daemons. Until the API server has answered, what it said last is taken from the disk.
type follower[T any] struct {
	kind[T]
	api      dynamic.Interface
	instance string
	node     *nodeFollower
	log      logrus.FieldLogger
	// put puts objects in force, which are sorted by name. It is called by run alone.
	put      func(objects []*T, origin Origin)
	onPanic  func(part string)
	changed  chan struct{} // holds at most one: something to decide upon
	told     chan struct{} // closed by setTold, once those objects are in force that are known to be there
	setTold  func()
	lastGood *lastGood // nil: nothing is kept on disk

	mu      sync.Mutex
	objects map[string]*version[T] // of the API server, by name
	disk    []*T                   // what was kept of an earlier process

	remembered bool // disk is known, be it that there is none
}

func newFollower[T any](k kind[T], o SourceOptions, node *nodeFollower, put func([]*T, Origin)) *follower[T] {
	f := &follower[T]{
		kind: k, api: o.Configs, node: node, instance: o.Instance, put: put, log: o.Log, onPanic: o.OnPanic,
		changed: make(chan struct{}, 1), told: make(chan struct{}), objects: map[string]*version[T]{},
	}
	f.setTold = sync.OnceFunc(func() { close(f.told) })
	node.onChange = append(node.onChange, f.wake)
	return f
}

// begin has tell put in force what is known before the API server answers.
func (f *follower[T]) begin(tell func()) {
	defer f.caught("decide")
	tell()
	if f.remembered {
		f.setTold()
	}
}

// run follows until ctx ends.
func (f *follower[T]) run(ctx context.Context, refused func()) {
	watch := informer.New(f.api.Resource(f.resource), informer.Options[*unstructured.Unstructured]{
		What: f.plural, Client: f.api, Kind: &unstructured.Unstructured{}, Keep: trimObject, Refused: refused, Log: f.log,
		Changed: func(before, after *unstructured.Unstructured) {
			if after == nil {
				f.forget(before.GetName())
				return
			}
			f.observe(after)
		},
	})
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { watch.Run(ctx) })
	read, placed := watch.Synced(), f.node.placed
	for {
		select {
		case <-read:
			read = nil
		case <-placed:
			placed = nil
		case <-f.changed:
		case <-ctx.Done():
			return
		}
		if read == nil && placed == nil {
			f.decide()
		}
	}
}

// trimObject drops the metadata that takes more memory than the object.
func trimObject(object runtime.Object) *unstructured.Unstructured {
	u, _ := object.(*unstructured.Unstructured) // the informer checks that
	u.SetManagedFields(nil)
	u.SetAnnotations(nil)
	return u
}

// wake has run decide anew.
func (f *follower[T]) wake() {
	select {
	case f.changed <- struct{}{}:
	default: // it will anyway
	}
}

// decide puts in force what the API server says now, and keeps it.
func (f *follower[T]) decide() {
	defer f.setTold()
	defer f.caught("decide")
	labels, _ := f.node.now()
	objects := f.selecting(labels)
	f.put(objects, OriginAPI)
	f.keep(objects)
}

// names returns the names of objects for the log.
func (f *follower[T]) names(objects []*T) string {
	var names []string
	for _, one := range objects {
		names = append(names, f.about(one).Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// caught is deferred around a part of the work: where that panics, what is in force
// stays so, for one object must not end the daemons of all nodes.
func (f *follower[T]) caught(part string) {
	if fault := recover(); fault != nil {
		f.panicked(part, fault, nil)
	}
}

// panicked logs a panic, and tells of it.
func (f *follower[T]) panicked(part string, fault any, fields logrus.Fields) {
	f.log.WithFields(fields).WithFields(logrus.Fields{"part": part, "panic": fault, "stack": string(debug.Stack())}).
		Errorf("a part of following the %s failed, and goes on", f.plural)
	f.onPanic(part)
}
