package crd

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-pacemaker/pod-pacemaker/crd/faultlog"
	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/rules"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// kind describes a custom resource whose type is T.
type kind[T any] struct {
	name, plural string
	logged       string // the log field for the name of an object
	resource     schema.GroupVersionResource
	check        rules.Check
	about        func(*T) about
}

// about is what a follower reads of an object.
type about struct {
	*metav1.ObjectMeta
	instance     string
	nodeSelector map[string]v1alpha1.LabelValue
}

// follower follows the objects of one kind that are for the instance of this daemon and
// select its node. [Source] documents what happens to an invalid object and while the API server is
// unavailable; each is logged once, not at every attempt. A field that this version does not know is
// logged and ignored, so that old daemons can read newer objects. Until the API server has answered,
// the objects come from the disk.
type follower[T any] struct {
	kind[T]
	SourceOptions
	node     *nodeFollower
	informer *informer.Informer[*Known[T]]
	// put puts objects in force. They are sorted by name. Only the goroutine of begin and run calls it.
	put      func(objects []*T, origin Origin)
	listed   atomic.Bool   // the API server has answered
	path     string        // of the file that keeps the objects on disk; empty if nothing is kept
	changed  chan struct{} // has one element if run has to decide again
	ready    chan struct{} // closed by setReady once the objects are known and in force
	setReady func()

	disk       []*T // what the file held when the process began
	onDisk     bool // there was a file, also one without objects; set by begin
	keepFaults faultlog.Log

	mu      sync.Mutex
	objects map[string]*Known[T] // of the API server, by name
}

func newFollower[T any](k kind[T], o SourceOptions, path string, node *nodeFollower, put func([]*T, Origin)) *follower[T] {
	f := &follower[T]{
		kind: k, SourceOptions: o, path: path, node: node, put: put,
		changed: make(chan struct{}, 1), ready: make(chan struct{}), objects: map[string]*Known[T]{},
	}
	f.setReady = sync.OnceFunc(func() { close(f.ready) })
	return f
}

// begin puts in force what is known before the API server answers: what the file holds.
func (f *follower[T]) begin() {
	defer f.caught("crd decide")
	f.onDisk = f.recall()
	f.put(f.disk, OriginDisk)
	if f.onDisk {
		f.setReady()
	}
}

// follow makes the informer.
func (f *follower[T]) follow(refused func()) {
	f.informer = informer.New(kube.Whole(f.Configs.Resource(f.resource)), informer.Options[*Known[T]]{
		What: f.plural, Client: f.Configs, Kind: &unstructured.Unstructured{}, Keep: f.readVersion, Refused: refused, Log: f.Log,
		Changed:  f.observe,
		Complete: func() { f.listed.Store(true); f.wake() },
	})
}

// run follows until ctx ends.
func (f *follower[T]) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { f.informer.Run(ctx) })
	for {
		select {
		case <-f.changed:
		case <-ctx.Done():
			return
		}
		if f.listed.Load() && (f.node.listed.Load() || f.node.refused.Load() && !f.onDisk) {
			f.decide()
		}
	}
}

// wake makes run decide again.
func (f *follower[T]) wake() {
	select {
	case f.changed <- struct{}{}:
	default: // it is going to
	}
}

// decide puts in force what the API server has now, and keeps that on disk if the labels of the node are known.
func (f *follower[T]) decide() {
	defer f.setReady()
	defer f.caught("crd decide")
	objects := f.selecting(f.node.labels())
	f.put(objects, OriginAPI)
	f.setReady() // keep waits for the disk
	if f.node.listed.Load() {
		f.keep(objects)
	}
}

// names returns the names of objects for the log.
func (f *follower[T]) names(objects []*T) string {
	var names []string
	for _, one := range objects {
		names = append(names, f.about(one).Name)
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// caught is deferred in a part of the work that may panic. What is in force then stays in force:
// one object must not end the daemons of all nodes.
func (f *follower[T]) caught(part string) {
	if fault := recover(); fault != nil {
		f.OnPanic(part, fault, nil)
	}
}
