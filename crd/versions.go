package crd

import (
	"fmt"
	"maps"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// version is what is known of one object.
type version[T any] struct {
	good *T // the last good version; nil if none was

	// Of the newest version, good or not.
	uid        types.UID
	generation int64
	instance   string
	fault      string // why it is not good
	unknown    string // what of it was left out
}

// observe takes a version of an object from the API server.
func (f *follower[T]) observe(u *unstructured.Unstructured) {
	next := f.judge(u)
	before := f.note(u.GetName(), next)
	log := f.log.WithFields(logrus.Fields{f.logged: u.GetName(), "generation": next.generation})
	if next.unknown != "" && next.unknown != before.unknown {
		log.WithField("reason", next.unknown).Warnf("%s has fields that this version does not know: they are left out", f.name)
	}
	switch {
	case next.fault == before.fault:
	case next.fault == "":
		log.Infof("%s is valid again", f.name)
	case before.good == nil:
		log.WithField("reason", next.fault).Errorf("%s is invalid and left out: it has no earlier version that was good", f.name)
	default:
		log.WithField("reason", next.fault).Errorf("%s is invalid: its generation %d stays in force", f.name, f.about(before.good).Generation)
	}
	f.wake()
}

// judge reads a version. One at which that panics is not good: else one object
// would end the daemons of all nodes, and again as soon as they are back.
func (f *follower[T]) judge(u *unstructured.Unstructured) (next version[T]) {
	next.uid, next.generation = u.GetUID(), u.GetGeneration()
	// Of another kind than this, the value is as good as absent.
	next.instance, _, _ = unstructured.NestedString(u.Object, "spec", "instance")
	defer func() {
		if fault := recover(); fault != nil {
			next.good, next.fault = nil, fmt.Sprintf("this version of pod-pacemaker fails to read it: %v", fault)
			f.panicked("decode", fault, logrus.Fields{f.logged: u.GetName()})
		}
	}()
	// The status is another's to write: it puts nothing in force.
	content := maps.Clone(u.Object)
	delete(content, "status")
	good, unknown, faults := decode(content, f.validate)
	next.good, next.fault, next.unknown = good, fieldErrors(faults).Error(), fieldErrors(unknown).Error()
	return next
}

// note puts a version among the objects, and gives what was known before. An object that was
// made anew under the same name inherits nothing.
func (f *follower[T]) note(name string, next version[T]) (before version[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.objects[name]; known != nil && known.uid == next.uid {
		before = *known
	} else if known == nil {
		for _, one := range f.disk {
			if a := f.about(one); a.Name == name && a.UID == next.uid {
				before.good = one
			}
		}
	}
	if next.good == nil {
		next.good = before.good
	}
	f.objects[name] = &next
	return before
}

// forget drops an object that the API server no longer has.
func (f *follower[T]) forget(name string) {
	f.mu.Lock()
	delete(f.objects, name)
	f.mu.Unlock()
	f.wake()
}

// selecting returns the last good versions for this instance that select a node with these
// labels, by name.
func (f *follower[T]) selecting(labels map[string]string) (found []*T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range sortedKeys(f.objects) {
		good := f.objects[name].good
		if good == nil {
			continue
		}
		if a := f.about(good); a.instance == f.instance && selects(a.nodeSelector, labels) {
			found = append(found, good)
		}
	}
	return found
}

// each calls look with all that is known of the objects for this instance, by name.
func (f *follower[T]) each(look func(name string, v version[T])) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range sortedKeys(f.objects) {
		if v := f.objects[name]; v.instance == f.instance {
			look(name, *v)
		}
	}
}
