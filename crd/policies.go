package crd

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Policies tells which StartPolicies are in force for one daemon: those of the API
// server for its instance that select its node. Where there are none, those of its
// file are in force. Make one with [Source.Policies], before the Source runs.
//
// A policy that is not valid holds no pod, and that is logged once. While the API
// server is away, or does not know StartPolicies, everything stays as it is.
type Policies struct {
	source   *Source
	log      logrus.FieldLogger
	fallback []*v1alpha1.StartPolicy
	onChange func([]*v1alpha1.StartPolicy)
	changed  chan struct{} // holds at most one: something to decide upon
	told     chan struct{} // closed once it is known which policies there are
	tellOnce sync.Once
	kept     *keptPolicies // nil: nothing is kept on disk
	unkept   string        // the last fault of keeping them that was logged

	mu      sync.Mutex
	objects map[string]*policyObject
	current []*v1alpha1.StartPolicy
}

// policyObject is what is known of one StartPolicy.
type policyObject struct {
	uid        types.UID
	generation int64
	instance   string
	good       *v1alpha1.StartPolicy // the newest version; nil: it is not valid
	fault      string
	unknown    string // what of it was left out
}

// Policies makes Policies that follow the labels of the source's node. onChange is told
// what is in force when Run begins and whenever that changes: in order, never twice
// at a time, and without a lock held. What it is given must not be changed. It is to be
// called once.
func (s *Source) Policies(fallback []*v1alpha1.StartPolicy, onChange func([]*v1alpha1.StartPolicy)) *Policies {
	p := &Policies{
		source: s, log: s.log, fallback: fallback, onChange: onChange,
		changed: make(chan struct{}, 1), told: make(chan struct{}),
		objects: map[string]*policyObject{}, current: fallback,
	}
	s.onLabels = p.wake
	return p
}

// Told is closed once it is known which policies there are, maybe none: they were
// remembered, or the API server has answered, be it that it does not serve them.
func (p *Policies) Told() <-chan struct{} { return p.told }

func (p *Policies) tell() { p.tellOnce.Do(func() { close(p.told) }) }

// Run watches the API server until ctx ends, then returns nil. It is to be called
// once. An error means that it could not begin.
func (p *Policies) Run(ctx context.Context) error {
	w, err := p.watch()
	if err != nil {
		return fmt.Errorf("watch StartPolicies: %w", err)
	}
	p.tellNow()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	read, placed := w.Synced(), (<-chan struct{})(p.source.placed)
	for {
		select {
		case <-read:
			read = nil
		case <-placed: // the labels of the node are known, if it is
			placed = nil
		case <-p.changed:
		case <-ctx.Done():
			return nil
		}
		if read == nil && placed == nil {
			p.decide()
		} else {
			p.forgetOtherNode()
		}
	}
}

// watch prepares the watch of all StartPolicies.
func (p *Policies) watch() (informer.Informer, error) {
	lw := listWatch(p.source.configs.Resource(v1alpha1.PolicyResource))
	observe := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			p.observe(u)
		}
	}
	reach := &informer.Reach{What: "StartPolicies", Log: p.log, Refused: p.tell}
	return informer.New(reach, lw, p.source.configs, &unstructured.Unstructured{}, trimConfig, cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, obj any) { observe(obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				p.forget(name)
			}
		},
	})
}

func (p *Policies) wake() {
	select {
	case p.changed <- struct{}{}:
	default: // it will decide anyway
	}
}

// observe takes a version of an object from the API server.
func (p *Policies) observe(u *unstructured.Unstructured) {
	next := p.judge(u)
	p.mu.Lock()
	before := p.objects[u.GetName()]
	p.objects[u.GetName()] = next
	p.mu.Unlock()
	if before == nil {
		before = &policyObject{}
	}
	log := p.log.WithFields(logrus.Fields{"policy": u.GetName(), "generation": next.generation})
	if next.unknown != "" && next.unknown != before.unknown {
		log.WithField("reason", next.unknown).Warn("StartPolicy has fields that this version does not know: they are left out")
	}
	switch {
	case next.fault == before.fault:
	case next.fault == "":
		log.Info("StartPolicy is valid again")
	default:
		log.WithField("reason", next.fault).Error("StartPolicy is invalid: it holds no pod")
	}
	p.wake()
}

// judge reads a version. One at which that panics is not good.
func (p *Policies) judge(u *unstructured.Unstructured) (o *policyObject) {
	o = &policyObject{uid: u.GetUID(), generation: u.GetGeneration()}
	o.instance, _, _ = unstructured.NestedString(u.Object, "spec", "instance")
	defer func() {
		if fault := recover(); fault != nil {
			o.good, o.fault = nil, fmt.Sprintf("this version of pod-pacemaker fails to read it: %v", fault)
			p.source.panicked("decode", fault, logrus.Fields{"policy": u.GetName()})
		}
	}()
	content := maps.Clone(u.Object)
	delete(content, "status")
	good, unknown, faults := decodePolicy(content)
	o.good, o.fault, o.unknown = good, fieldErrors(faults).Error(), fieldErrors(unknown).Error()
	return o
}

func (p *Policies) forget(name string) {
	p.mu.Lock()
	delete(p.objects, name)
	p.mu.Unlock()
	p.wake()
}

// tellNow tells what is in force now.
func (p *Policies) tellNow() {
	defer p.source.caught(policiesPart)
	p.onChange(p.inForce())
}

// policiesPart names what a panic was in.
const policiesPart = "decidePolicies"

// inForce gives what is in force now.
func (p *Policies) inForce() []*v1alpha1.StartPolicy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// decide puts in force what the API server says now, and tells so if that is new.
func (p *Policies) decide() {
	defer p.tell()
	defer p.source.caught(policiesPart)
	labels, node := p.source.labelsNow()
	before, next, said := p.choose(labels)
	if !samePolicies(before, next) {
		p.log.WithField("policies", policyNames(next)).Info("StartPolicies are in force")
		p.onChange(next)
	}
	p.keep(node, said)
}

// choose puts in force what the API server says for a node with these labels. It gives what
// was in force before and what is now, and what the API server says.
func (p *Policies) choose(labels map[string]string) (before, next, said []*v1alpha1.StartPolicy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range sortedKeys(p.objects) {
		o := p.objects[name]
		if o.good != nil && o.good.Spec.Instance == p.source.instance && selects(o.good.Spec.NodeSelector, labels) {
			said = append(said, o.good)
		}
	}
	before, next = p.current, said
	if len(next) == 0 {
		next = p.fallback
	}
	p.current = next
	return before, next, said
}

// samePolicies tells whether the same is in force by both.
func samePolicies(a, b []*v1alpha1.StartPolicy) bool {
	return slices.EqualFunc(a, b, func(a, b *v1alpha1.StartPolicy) bool {
		return a.Name == b.Name && a.UID == b.UID && a.Generation == b.Generation && reflect.DeepEqual(a.Spec, b.Spec)
	})
}

func policyNames(all []*v1alpha1.StartPolicy) string {
	names := make([]string, len(all))
	for i, policy := range all {
		names[i] = policy.Name
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
