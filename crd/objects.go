package crd

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// objects are the PacemakerConfigs of the API server by name.
type objects map[string]*object

// object is what is known of one PacemakerConfig.
type object struct {
	uid     types.UID
	good    *v1alpha1.PacemakerConfig // the last good version; nil if none was
	fault   string                    // why the newest version is not good
	unknown string                    // what of the newest version was left out

	// Of the newest version, good or not.
	generation int64
	instance   string
}

// good returns the last good version of every object that had one and is for the
// instance, by name.
func (o objects) good(instance string) []*v1alpha1.PacemakerConfig {
	var configs []*v1alpha1.PacemakerConfig
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if good := o[name].good; good != nil && good.Spec.Instance == instance {
			configs = append(configs, good)
		}
	}
	return configs
}

// put notes a version of an object and returns what was known of it before. An
// object that was made anew under the same name inherits nothing.
func (o objects) put(name string, next object) (before object) {
	if known := o[name]; known != nil && known.uid == next.uid {
		before = *known
	}
	if next.good == nil {
		next.good = before.good
	}
	o[name] = &next
	return before
}

// observe takes a version of an object from the API server.
func (s *Source) observe(u *unstructured.Unstructured) {
	defer s.caught("observe")
	next := s.judge(u)
	before := s.note(u, next)
	s.logVersion(u, before, next)
	s.wake()
}

// judge reads a version. One at which that panics is not good: else one object
// would end the daemons of all nodes, and again as soon as they are back.
func (s *Source) judge(u *unstructured.Unstructured) (next object) {
	next.uid, next.generation = u.GetUID(), u.GetGeneration()
	// Of another kind than this, the value is as good as absent.
	next.instance, _, _ = unstructured.NestedString(u.Object, "spec", "instance")
	defer func() {
		if fault := recover(); fault != nil {
			next.good, next.fault = nil, fmt.Sprintf("this version of pod-pacemaker fails to read it: %v", fault)
			s.panicked("decode", fault, logrus.Fields{"config": u.GetName()})
		}
	}()
	// The status is another's to write: it puts nothing in force.
	content := maps.Clone(u.Object)
	delete(content, "status")
	good, unknown, faults := s.decode(content)
	next.good, next.fault, next.unknown = good, fieldErrors(faults).Error(), fieldErrors(unknown).Error()
	return next
}

// note puts a version among the objects, and gives what was known before.
func (s *Source) note(u *unstructured.Unstructured, next object) (before object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recallLocked(u)
	return s.objects.put(u.GetName(), next)
}

// forget drops an object that the API server no longer has.
func (s *Source) forget(name string) {
	s.drop(name)
	s.wake()
}

func (s *Source) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
}

// logVersion says what is wrong with a version, unless it was said before.
func (s *Source) logVersion(u *unstructured.Unstructured, before, next object) {
	log := s.log.WithFields(logrus.Fields{"config": u.GetName(), "generation": u.GetGeneration()})
	if next.unknown != before.unknown && next.unknown != "" {
		log.WithField("reason", next.unknown).Warn("PacemakerConfig has fields that this version does not know: they are left out")
	}
	switch {
	case next.fault == before.fault:
	case next.fault == "":
		log.Info("PacemakerConfig is valid again")
	case before.good == nil:
		log.WithField("reason", next.fault).Error("PacemakerConfig is invalid and left out: it has no earlier version that was good")
	default:
		log.WithField("reason", next.fault).Errorf("PacemakerConfig is invalid: its generation %d stays in force", before.good.Generation)
	}
}
