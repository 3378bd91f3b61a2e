package crd

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// KnownPolicy is a StartPolicy of the API server, valid or not.
type KnownPolicy struct {
	Name string
	UID  types.UID
	// Generation is that of the newest version.
	Generation int64
	// Fault is what is wrong with that; empty: nothing.
	Fault string
	// Policy is the newest version, nil if it is not valid. It must not be changed.
	Policy *v1alpha1.StartPolicy
}

// Known returns the StartPolicies of the API server that are for this daemon's
// instance, by name, also those that do not select its node. It does not block, and
// is safe for concurrent use.
func (p *Policies) Known() []KnownPolicy {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []KnownPolicy
	for _, name := range sortedKeys(p.objects) {
		if o := p.objects[name]; o.instance == p.source.instance {
			all = append(all, KnownPolicy{Name: name, UID: o.uid, Generation: o.generation, Fault: o.fault, Policy: o.good})
		}
	}
	return all
}
