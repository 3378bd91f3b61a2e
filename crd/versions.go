package crd

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Known is what is known of an object in the API server.
type Known[T any] struct {
	// ObjectMeta has the name, the UID, the generation and the resource version of the newest version.
	metav1.ObjectMeta
	// Fault is what is wrong with the newest version. It is empty if that is valid.
	Fault string
	// Valid is the last valid version, or nil if there was none. It must not be changed.
	Valid *T

	instance string // of the newest version
	unknown  string // fields of the newest version that were ignored
}

// observe stores a version of an object from the API server, or drops the last one if next is nil.
func (f *follower[T]) observe(last, next *Known[T]) {
	defer f.wake()
	if next == nil {
		f.mu.Lock()
		delete(f.objects, last.Name)
		f.mu.Unlock()
		return
	}
	before := f.store(next)
	log := f.Log.WithFields(logrus.Fields{f.logged: next.Name, "generation": next.Generation})
	if next.unknown != "" && next.unknown != before.unknown {
		log.WithField(logrus.ErrorKey, next.unknown).Warnf("%s %s has fields that this version does not know; they are ignored", f.name, next.Name)
	}
	switch {
	case next.Fault == before.Fault:
	case next.Fault == "":
		log.Infof("%s %s is valid again", f.name, next.Name)
	case before.Valid == nil:
		log.WithField(logrus.ErrorKey, next.Fault).Errorf("%s %s is invalid and ignored: no earlier version was valid", f.name, next.Name)
	default:
		log.WithField(logrus.ErrorKey, next.Fault).Errorf("%s %s is invalid: its generation %d stays in force", f.name, next.Name, f.about(before.Valid).Generation)
	}
}

// readVersion decodes and validates a version. If that panics, the version is invalid: otherwise one object
// could end the daemons of all nodes, at every start.
func (f *follower[T]) readVersion(object runtime.Object) (next *Known[T]) {
	u, _ := object.(*unstructured.Unstructured) // the informer checks that
	next = &Known[T]{ObjectMeta: metav1.ObjectMeta{
		Name: u.GetName(), UID: u.GetUID(), Generation: u.GetGeneration(), ResourceVersion: u.GetResourceVersion(),
	}}
	// A value that is not a string counts as absent.
	next.instance, _, _ = unstructured.NestedString(u.Object, "spec", "instance")
	defer func() {
		if fault := recover(); fault != nil {
			next.Valid, next.Fault = nil, fmt.Sprintf("this version of pod-pacemaker fails to read it: %v", fault)
			f.OnPanic("crd decode", fault, logrus.Fields{f.logged: next.Name})
		}
	}()
	// Only this much is in force and is kept on disk. The status changes without it.
	content := map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "spec": u.Object["spec"],
		"metadata": map[string]any{"name": next.Name, "uid": string(next.UID), "generation": next.Generation},
	}
	good, unknown, faults := decode[T](content, f.check)
	next.Valid, next.Fault, next.unknown = good, fieldErrors(faults).Error(), fieldErrors(unknown).Error()
	return next
}

// store keeps a version and returns the one before. An object that was deleted and created again under
// the same name does not inherit the last valid version.
func (f *follower[T]) store(next *Known[T]) (before Known[T]) {
	var onDisk *T
	for _, one := range f.disk {
		if a := f.about(one); a.Name == next.Name && a.UID == next.UID {
			onDisk = one
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch known := f.objects[next.Name]; {
	case known == nil:
		before.Valid = onDisk
	case known.UID == next.UID:
		before = *known
	}
	if next.Valid == nil {
		next.Valid = before.Valid
	}
	f.objects[next.Name] = next
	return before
}

// selecting returns the last valid versions that are for this instance and select a node with these
// labels, sorted by name.
func (f *follower[T]) selecting(labels map[string]string) (found []*T) {
	for _, v := range f.known() {
		if v.Valid == nil {
			continue
		}
		if a := f.about(v.Valid); a.instance == f.Instance && selects(a.nodeSelector, labels) {
			found = append(found, v.Valid)
		}
	}
	return found
}

// known returns what is known about all objects, sorted by name.
func (f *follower[T]) known() (all []Known[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.objects)) {
		all = append(all, *f.objects[name])
	}
	return all
}

// ofInstance returns what is known about the objects of this instance, sorted by name.
func (f *follower[T]) ofInstance() []Known[T] {
	return slices.DeleteFunc(f.known(), func(v Known[T]) bool { return v.instance != f.Instance })
}
