package crd

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Source tells which config is in force for one daemon, from the PacemakerConfigs
// of the API server and the labels of this node's Node object. It sees the configs
// whose spec.instance is the daemon's, and no others. Where none of them selects
// the node, the fallback is in force; without one, nothing is held.
//
// Of an object that becomes invalid, the last good version stays in force; one
// that was never valid counts as absent. While the API server is away, or does
// not know PacemakerConfigs, everything stays as it is. Each of these is logged
// once, not at every try. An object's field that this version does not know is
// logged and left out, so that new objects do not stop old daemons.
type Source struct {
	configs  dynamic.Interface
	nodes    kube.Interface
	node     string
	instance string
	log      logrus.FieldLogger
	fallback *v1alpha1.PacemakerConfig
	onChange func(Effective)
	onPanic  func(part string)
	decode   func(map[string]any) (config *v1alpha1.PacemakerConfig, unknown, errs field.ErrorList)
	changed  chan struct{} // holds at most one: something to decide upon
	synced   chan struct{} // closed after the first decision
	placed   chan struct{} // closed once the labels of this node were read
	told     chan struct{} // closed once it is known which config is the node's
	tellOnce sync.Once
	lastGood *LastGood   // nil: nothing is kept on disk
	disk     *remembered // what it held; nil: nothing
	unkept   string      // the last fault of keeping it that was logged
	onLabels func()      // called when the labels of this node changed; can be nil

	onShutdown func(begins bool) // can be nil
	seenUp     bool              // this node was seen when it was not being shut down
	down       bool              // it is being shut down since

	onPressure func(begins bool) // can be nil
	pressed    bool              // this node runs short of something

	mu      sync.Mutex
	current Effective
	objects objects
	labels  map[string]string // of this node; nil until its Node is seen
	nodeUID types.UID         // of the same
	ties    []string          // with the config in force, as of the last decision
}

// NewSource makes a Source for the daemon with this instance name, which can be
// empty, on the named node; Run does its work. fallback can be nil, see FromFile.
// onChange, if not nil, is told what is in force when Run begins and whenever that
// changes: in order, never twice at a time, and without a lock held. Until it
// returns, no further change is noticed.
func NewSource(configs dynamic.Interface, nodes kube.Interface, nodeName, instance string,
	fallback *v1alpha1.PacemakerConfig, log logrus.FieldLogger, onChange func(Effective),
) *Source {
	if onChange == nil {
		onChange = func(Effective) {}
	}
	return &Source{
		configs: configs, nodes: nodes, node: nodeName, instance: instance,
		log: log, fallback: fallback, onChange: onChange, onPanic: func(string) {}, decode: decode,
		changed: make(chan struct{}, 1),
		synced:  make(chan struct{}),
		placed:  make(chan struct{}),
		told:    make(chan struct{}),
		current: FromFile(fallback),
		objects: objects{},
	}
}

// Current returns what is in force now. It does not block, and is safe for
// concurrent use; the result is the caller's own.
func (s *Source) Current() Effective {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.current
	current.Spec = *s.current.Spec.DeepCopy()
	return current
}

// Synced is closed once the API server's configs and this node's labels have
// been read and what they say is in force. Until then it is what was remembered,
// or the fallback.
func (s *Source) Synced() <-chan struct{} { return s.synced }

// Run watches the API server until ctx ends, then returns nil. It is to be
// called once. An error means that it could not begin.
func (s *Source) Run(ctx context.Context) error {
	configs, err := s.watchConfigs()
	if err != nil {
		return fmt.Errorf("watch PacemakerConfigs: %w", err)
	}
	node, err := s.watchNode()
	if err != nil {
		return fmt.Errorf("watch node %s: %w", s.node, err)
	}
	s.onChange(s.Current())
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range []informer.Informer{configs, node} {
		group.Go(func() error { w.Run(ctx); return nil })
	}
	group.Go(func() error { s.awaitPlaced(ctx, node); return nil })
	group.Go(func() error { s.decideUntil(ctx, configs, node); return nil })
	return group.Wait()
}

// awaitPlaced notes that the labels of this node were read. StartPolicies follow them,
// too, whether or not the configs can be read.
func (s *Source) awaitPlaced(ctx context.Context, node informer.Informer) {
	select {
	case <-node.Synced():
		close(s.placed)
	case <-ctx.Done():
	}
}

// decideUntil decides once everything was read, and then after every change.
func (s *Source) decideUntil(ctx context.Context, all ...informer.Informer) {
	for _, w := range all {
		if !s.awaitSynced(ctx, w) {
			return
		}
	}
	s.decide(true)
	close(s.synced)
	s.tell()
	for {
		select {
		case <-s.changed:
			s.decide(false)
		case <-ctx.Done():
			return
		}
	}
}

// wake has decideUntil decide anew.
func (s *Source) wake() {
	select {
	case s.changed <- struct{}{}:
	default: // it will anyway
	}
}

// decide puts in force what the API server says now, and tells so if that, or
// anything at all, is new.
func (s *Source) decide(first bool) {
	defer s.caught("decide")
	d := s.choose()
	if first && d.unknownNode {
		s.log.WithField("node", s.node).Warn("the API server has no such node: until it has, only a PacemakerConfig without nodeSelector can be in force")
	}
	if len(d.newTies) > 0 {
		s.log.WithField("config", d.next.Name).Warnf("PacemakerConfigs of the same priority also select this node: %s; the first by name is in force", strings.Join(d.newTies, ", "))
	}
	if d.isNew || first {
		s.logInForce(d.next)
	}
	if d.isNew {
		s.onChange(s.Current())
	}
	s.keep(d.said)
}

// decision is what choose has put in force.
type decision struct {
	next        Effective
	isNew       bool     // it was not in force before
	newTies     []string // that were not there before
	unknownNode bool     // the API server has no such node
	said        remembered
}

// choose puts in force what the API server says now.
func (s *Source) choose() decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	chosen, ties := Select(s.labels, s.objects.good(s.instance))
	d := decision{
		next: FromFile(s.fallback), unknownNode: s.labels == nil,
		said: remembered{nodeUID: s.nodeUID, config: chosen},
	}
	if chosen != nil {
		d.next = fromAPI(chosen)
	}
	d.isNew = !reflect.DeepEqual(s.current, d.next)
	s.current = d.next
	if !slices.Equal(ties, s.ties) {
		d.newTies = ties
	}
	s.ties = ties
	return d
}

func (s *Source) logInForce(e Effective) {
	log := s.log.WithFields(logrus.Fields{"config": e.Name, "origin": e.Origin, "generation": e.Generation})
	switch e.Origin {
	case OriginAPI:
		log.Info("PacemakerConfig is in force")
	case OriginFile:
		log.Info("no PacemakerConfig of the API server selects this node: the file is in force")
	default:
		s.log.Warn("no PacemakerConfig selects this node: nothing is held")
	}
}
