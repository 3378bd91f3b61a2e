package crd

import (
	"fmt"
	"slices"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// version is what is known about one object.
type version[T any] struct {
	good *T // the last valid version, or nil

	// The others describe the newest version, which may be invalid.
	name       string
	uid        types.UID
	generation int64
	instance   string
	fault      string // why it is invalid, or empty
	unknown    string // fields that were ignored
}

// observe stores a version of an object from the API server.
func (f *follower[T]) observe(u *unstructured.Unstructured) {
	next := f.readVersion(u)
	before := f.store(next)
	log := f.log.WithFields(logrus.Fields{f.logged: u.GetName(), "generation": next.generation})
	if next.unknown != "" && next.unknown != before.unknown {
		log.WithField("reason", next.unknown).Warnf("%s has fields that this version does not know; they are ignored", f.name)
	}
	switch {
	case next.fault == before.fault:
	case next.fault == "":
		log.Infof("%s is valid again", f.name)
	case before.good == nil:
		log.WithField("reason", next.fault).Errorf("%s is invalid and ignored: no earlier version was valid", f.name)
	default:
		log.WithField("reason", next.fault).Errorf("%s is invalid: its generation %d stays in force", f.name, f.about(before.good).Generation)
	}
	f.wake()
}

// readVersion decodes and validates a version. If that panics, the version is invalid: otherwise one object
// could end the daemons of all nodes, at every start.
func (f *follower[T]) readVersion(u *unstructured.Unstructured) (next version[T]) {
	next.name, next.uid, next.generation = u.GetName(), u.GetUID(), u.GetGeneration()
	// A value that is not a string counts as absent.
	next.instance, _, _ = unstructured.NestedString(u.Object, "spec", "instance")
	defer func() {
		if fault := recover(); fault != nil {
			next.good, next.fault = nil, fmt.Sprintf("this version of pod-pacemaker fails to read it: %v", fault)
			f.panicked("decode", fault, logrus.Fields{f.logged: u.GetName()})
		}
	}()
	// Only this much is in force and is kept on disk. The status changes without it.
	content := map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "spec": u.Object["spec"],
		"metadata": map[string]any{"name": u.GetName(), "uid": string(next.uid), "generation": next.generation},
	}
	good, unknown, faults := decode(content, f.validate)
	next.good, next.fault, next.unknown = good, fieldErrors(faults).Error(), fieldErrors(unknown).Error()
	return next
}

// store keeps a version and returns the one before. An object that was deleted and created again under
// the same name does not inherit the last valid version.
func (f *follower[T]) store(next version[T]) (before version[T]) {
	var onDisk *T
	for _, one := range f.disk {
		if a := f.about(one); a.Name == next.name && a.UID == next.uid {
			onDisk = one
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch known := f.objects[next.name]; {
	case known == nil:
		before.good = onDisk
	case known.uid == next.uid:
		before = *known
	}
	if next.good == nil {
		next.good = before.good
	}
	f.objects[next.name] = &next
	return before
}

// forget drops an object that the API server no longer has.
func (f *follower[T]) forget(name string) {
	f.mu.Lock()
	delete(f.objects, name)
	f.mu.Unlock()
	f.wake()
}

// selecting returns the last valid versions that are for this instance and select a node with these
// labels, sorted by name.
func (f *follower[T]) selecting(labels map[string]string) (found []*T) {
	for _, v := range f.known() {
		if v.good == nil {
			continue
		}
		if a := f.about(v.good); a.instance == f.instance && selects(a.nodeSelector, labels) {
			found = append(found, v.good)
		}
	}
	return found
}

// known returns what is known about all objects, sorted by name.
func (f *follower[T]) known() (all []version[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range sortedKeys(f.objects) {
		all = append(all, *f.objects[name])
	}
	return all
}

// ofInstance returns what is known about the objects of this instance, sorted by name.
func (f *follower[T]) ofInstance() []version[T] {
	return slices.DeleteFunc(f.known(), func(v version[T]) bool { return v.instance != f.instance })
}
