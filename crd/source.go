package crd

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Source knows which config is in force for one daemon, from the PacemakerConfigs
// of the API server and the labels of this node's Node object. It sees the configs
// whose spec.instance is the daemon's, and no others. Where none of them selects
// the node, the fallback is in force; without one, nothing is held.
//
// Of an object that becomes invalid, the last good version stays in force; one
// that was never valid counts as absent. While the API server is away, or does
// not know PacemakerConfigs, everything stays as it is.
type Source struct {
	options SourceOptions
	configs *follower[v1alpha1.PacemakerConfig]
	node    *nodeFollower
	current atomic.Pointer[Effective]
	decided bool // the API server has answered
}

var configKind = kind[v1alpha1.PacemakerConfig]{
	name: v1alpha1.Kind, plural: "PacemakerConfigs", logged: "config", resource: v1alpha1.Resource, validate: Validate,
	about: func(c *v1alpha1.PacemakerConfig) about {
		return about{&c.ObjectMeta, c.Spec.Instance, c.Spec.NodeSelector, &c.Spec}
	},
}

// SourceOptions say what a [Source] follows, and whom it tells. All are needed but Instance and Fallback.
// OnChange and OnNode are each called in the order of the changes, never twice at a time, and without a lock
// held; until one returns, no further change of that kind is noticed. OnPanic must be safe for concurrent use.
type SourceOptions struct {
	// Configs is the way to the custom resources, Nodes that to the Node objects.
	Configs dynamic.Interface
	Nodes   kube.Interface
	// NodeName is the node's name, Instance the daemon's, which can be empty.
	NodeName, Instance string
	// Fallback is in force while no config of the API server selects the node; see FromFile.
	Fallback *v1alpha1.PacemakerConfig
	// OnChange is told what is in force when Run begins and whenever that changes.
	OnChange func(Effective)
	// OnNode is called with this node's Node object when it is seen first and whenever it has changed. The object
	// has no more than its name, UID, version, labels and conditions, and is not to be changed.
	OnNode func(*corev1.Node)
	// OnPanic is called for every panic that Run catches, with the part of the work in which it was.
	OnPanic func(part string)
	Log     logrus.FieldLogger
}

// NewSource makes a Source; Run does its work.
func NewSource(o SourceOptions) *Source {
	s := &Source{options: o, node: newNodeFollower(o)}
	s.set(nil, OriginNone)
	s.configs = newFollower(configKind, o, s.node, s.put)
	return s
}

// Remember puts in force what the file at path holds, until the API server answers, and has
// what that says kept there. A file that is damaged, or another node's, is logged and
// left out. It is to be called before Run, once.
func (s *Source) Remember(path string) {
	if found, ok := s.configs.remember(path); ok {
		s.set(found, OriginDisk)
	}
}

// Told is closed once OnChange has returned from what this node's config is known to be, maybe
// none: it was remembered, or the API server has answered. To answer that it serves no
// PacemakerConfigs, or not to this daemon, is an answer too: what is in force
// then stays so, and it is not known for how long.
func (s *Source) Told() <-chan struct{} { return s.configs.told }

// Fault returns what is wrong with the newest version of the named PacemakerConfig; empty: nothing,
// or there is none. It does not block, and is safe for concurrent use.
func (s *Source) Fault(name string) (fault string) {
	s.configs.each(func(one string, v version[v1alpha1.PacemakerConfig]) {
		if one == name {
			fault = v.fault
		}
	})
	return fault
}

// NodeUID returns the UID of this node's Node object, empty until it was seen. It
// does not block, and is safe for concurrent use.
func (s *Source) NodeUID() types.UID {
	_, uid := s.node.now()
	return uid
}

// Run watches the API server until ctx ends. It is to be called once.
func (s *Source) Run(ctx context.Context) {
	s.configs.begin(func() { s.options.OnChange(*s.current.Load()) })
	var running sync.WaitGroup
	running.Go(func() { s.node.run(ctx, s.refused) })
	running.Go(func() { s.configs.run(ctx, s.refused) })
	running.Wait()
}

// refused takes note that the API server will not tell.
func (s *Source) refused() {
	select {
	case <-s.Told():
		return
	default:
	}
	if s.current.Load().Origin == OriginNone {
		s.options.Log.Warn("the API server does not tell the PacemakerConfigs: no limit of one is in force until it does")
	}
	s.configs.setTold()
}

// put puts one of these configs in force, and tells so if that, or anything at all, is new.
func (s *Source) put(configs []*v1alpha1.PacemakerConfig, origin Origin) {
	before, next := s.set(configs, origin)
	if len(next.Ties) > 0 && !slices.Equal(next.Ties, before.Ties) {
		s.options.Log.WithField("config", next.Name).Warnf("PacemakerConfigs of the same priority also select this node: %s; the first by name is in force", strings.Join(next.Ties, ", "))
	}
	isNew := !reflect.DeepEqual(before, next)
	if origin == OriginAPI && (isNew || !s.decided) {
		s.decided = true
		s.logInForce(next)
	}
	if isNew {
		s.options.OnChange(next)
	}
}

// set puts one of these configs in force, and gives what was before and what is now.
func (s *Source) set(configs []*v1alpha1.PacemakerConfig, origin Origin) (before, next Effective) {
	next = FromFile(s.options.Fallback)
	if chosen, ties := first(configs); chosen != nil {
		next = Effective{Name: chosen.Name, Origin: origin, Generation: chosen.Generation, Spec: chosen.Spec, Ties: ties}
	}
	if was := s.current.Swap(&next); was != nil {
		before = *was
	}
	return before, next
}

func (s *Source) logInForce(e Effective) {
	log := s.options.Log.WithFields(logrus.Fields{"config": e.Name, "origin": e.Origin, "generation": e.Generation})
	switch e.Origin {
	case OriginAPI:
		log.Info("PacemakerConfig is in force")
	case OriginFile:
		log.Info("no PacemakerConfig of the API server selects this node: the file is in force")
	default:
		s.options.Log.Warn("no PacemakerConfig selects this node: nothing is held")
	}
}
