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

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/rules"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Source finds the config that is in force for one daemon. It reads the PacemakerConfigs in
// the API server whose spec.instance is the daemon's, and the labels of this node's Node
// object. If no config selects the node, the fallback is in force. Without a fallback, no
// pod is held.
//
// If an object becomes invalid, its last valid version stays in force. An object that was
// never valid is ignored. While the API server is unavailable, or does not serve
// PacemakerConfigs, everything stays as it is. While it does not let the daemon read its Node, what was
// kept on disk stays in force, or else what the API server has without a nodeSelector.
//
// StartPolicies are treated likewise, but all that select the node are in force. Both kinds are followed separately, so
// objects of one kind come into force though the objects of the other cannot be read.
type Source struct {
	options  SourceOptions
	configs  *follower[v1alpha1.PacemakerConfig]
	policies *follower[v1alpha1.StartPolicy]
	node     *nodeFollower
	current  atomic.Pointer[Effective] // nil until Begin

	decided bool // the API server has answered; only the goroutine of configs uses it
	// Only the goroutine of policies uses these.
	began   bool // OnPolicies was called
	inForce []*v1alpha1.StartPolicy
}

var configKind = kind[v1alpha1.PacemakerConfig]{
	name: v1alpha1.Kind, plural: "PacemakerConfigs", logged: "config", resource: v1alpha1.Resource, check: rules.Config,
	about: func(c *v1alpha1.PacemakerConfig) about {
		return about{&c.ObjectMeta, c.Spec.Instance, c.Spec.NodeSelector}
	},
}

// SourceOptions configure a [Source]. Instance, ConfigsPath, PoliciesPath, Fallback and FilePolicies may be empty, and
// Write if neither path is set. All others are required.
//
// OnChange, OnPolicies and OnNode are each called in the order of the changes, by one goroutine at a time, and
// without a lock held. Until one returns, further changes of its kind wait. OnPanic must be safe for
// concurrent use.
type SourceOptions struct {
	// Configs reads the custom resources, Nodes the Node objects.
	Configs dynamic.Interface
	Nodes   kube.Interface
	// NodeName is the name of the node. Instance is the instance name of the daemon, or empty.
	NodeName, Instance string
	// ConfigsPath and PoliciesPath are the files in which Run keeps what the API server returns of each kind. Begin
	// puts in force what they hold until the API server answers. A file that is damaged, or of another node,
	// is logged and ignored, and so is an object in it that is not valid. If a path is empty, nothing is kept.
	ConfigsPath, PoliciesPath string
	// Write replaces the content of one of these files. After a power cut, the file must have either its old or its
	// new content. It may block.
	Write func(path string, content []byte) error
	// Fallback is in force while no config in the API server selects the node. See [FromFile].
	Fallback *v1alpha1.PacemakerConfig
	// FilePolicies are in force while no StartPolicy in the API server selects the node.
	FilePolicies []*v1alpha1.StartPolicy
	// OnChange is called by Begin with what is in force, and by Run whenever that changes.
	OnChange func(Effective)
	// OnPolicies is called like OnChange with the StartPolicies in force. It must not change them.
	OnPolicies func([]*v1alpha1.StartPolicy)
	// OnNode is called with this node's Node object when it is first seen, after each change, and after each new list
	// even without a change. The object has only its name, UID, version, time of creation, labels, taints and conditions.
	// OnNode must not change it.
	OnNode func(*corev1.Node)
	// OnPanic is called in the goroutine of every panic that Run catches, with the name of the part that panicked and
	// what the panic is about, for the log. fields may be nil.
	OnPanic func(part string, fault any, fields logrus.Fields)
	Log     logrus.FieldLogger
}

// NewSource returns a Source. Run does its work.
func NewSource(o SourceOptions) *Source {
	s := &Source{options: o}
	s.node = &nodeFollower{SourceOptions: o, changed: func() { s.configs.wake(); s.policies.wake() }}
	s.configs = newFollower(configKind, o, o.ConfigsPath, s.node, s.put)
	s.policies = newFollower(policyKind, o, o.PoliciesPath, s.node, s.putPolicies)
	s.node.follow()
	s.configs.follow(s.refused)
	s.policies.follow(s.policies.setReady)
	return s
}

// Faults returns why the configs, the policies and the Node cannot be read now; nil for each that can. What is known of
// them stays in force. Faults does not block, and is safe for concurrent use.
func (s *Source) Faults() []*informer.Fault {
	return []*informer.Fault{s.configs.informer.Fault(), s.policies.informer.Fault(), s.node.informer.Fault()}
}

// Ready returns a channel that is closed once this node's config is known and OnChange has returned
// for it: it was read from the disk, or the API server has answered. That there is no config counts as
// known. An API server that for some seconds does not serve PacemakerConfigs, or not to this daemon, has answered, too:
// what is in force then stays in force.
func (s *Source) Ready() <-chan struct{} { return s.configs.ready }

// KnownConfig is a PacemakerConfig in the API server.
type KnownConfig = Known[v1alpha1.PacemakerConfig]

// KnownConfigs returns the PacemakerConfigs in the API server for this daemon's instance, sorted by name, also those that
// do not select its node. It does not block, and is safe for concurrent use.
func (s *Source) KnownConfigs() []KnownConfig { return s.configs.ofInstance() }

// Fault returns what is wrong with the newest version of the named PacemakerConfig. It is empty if
// that is valid or there is none. Fault does not block, and is safe for concurrent use.
func (s *Source) Fault(name string) string {
	for _, v := range s.configs.ofInstance() {
		if v.Name == name {
			return v.Fault
		}
	}
	return ""
}

// NodeUID returns the UID of this node's Node object. It is empty until the object is seen. NodeUID
// does not block, and is safe for concurrent use.
func (s *Source) NodeUID() types.UID {
	if node := s.Node(); node != nil {
		return node.UID
	}
	return ""
}

// Node returns the newest version of this node's Node object that is known, with the fields that OnNode gets. It is nil
// until the object is seen. The caller must not change it. Node does not block, and is safe for concurrent use.
func (s *Source) Node() *corev1.Node { return s.node.node.Load() }

// Begin puts in force what the disk holds, the policies first. It reads two small files. Call it once.
func (s *Source) Begin() {
	s.policies.begin()
	s.configs.begin()
}

// Run watches the API server until ctx ends. Call it once, after Begin.
func (s *Source) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { s.node.informer.Run(ctx) })
	running.Go(func() { s.configs.run(ctx) })
	running.Go(func() { s.policies.run(ctx) })
	running.Wait()
}

// refused is called when the API server does not serve PacemakerConfigs, or not to this daemon.
func (s *Source) refused() {
	select {
	case <-s.Ready():
		return
	default:
	}
	if s.current.Load().Origin == OriginNone {
		s.options.Log.Warn("the API server does not serve PacemakerConfigs to this daemon: no limit is in force until it does")
	}
	s.configs.setReady()
}

// put puts the first of these configs in force, or else the fallback, and calls OnChange if that changes anything.
func (s *Source) put(configs []*v1alpha1.PacemakerConfig, origin Origin) {
	next := FromFile(s.options.Fallback)
	if chosen, ties := first(configs); chosen != nil {
		next = Effective{Name: chosen.Name, Origin: origin, Generation: chosen.Generation, Spec: chosen.Spec, Ties: ties}
	}
	var before Effective
	if known := s.current.Swap(&next); known != nil {
		before = *known
	}
	if len(next.Ties) > 0 && !slices.Equal(next.Ties, before.Ties) {
		s.options.Log.WithField("config", next.Name).
			Warnf("PacemakerConfigs of the same priority also select this node: %s; %s, the first by name, is in force", strings.Join(next.Ties, ", "), next.Name)
	}
	isNew := !reflect.DeepEqual(before, next) // always at first: every origin has a name
	if origin == OriginAPI {
		if next.Origin == OriginNone && (isNew || !s.decided) {
			s.options.Log.Warn("no PacemakerConfig selects this node, so no pod is held: compare its labels with the nodeSelectors in 'kubectl get pacemakerconfigs -o yaml'")
		}
		s.decided = true
	}
	if isNew {
		s.options.OnChange(next)
	}
}
