package crd

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Known is a PacemakerConfig of the API server, valid or not.
type Known struct {
	Name string
	UID  types.UID
	// Generation is that of the newest version.
	Generation int64
	// Fault is what is wrong with the newest version; empty: nothing.
	Fault string
}

// Known returns the PacemakerConfigs of the API server that are for this daemon's
// instance, by name. It does not block, and is safe for concurrent use.
func (s *Source) Known() []Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Known
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if o := s.objects[name]; o.instance == s.instance {
			all = append(all, Known{Name: name, UID: o.uid, Generation: o.generation, Fault: o.fault})
		}
	}
	return all
}

// MostNodes is the largest size of a cluster that is believed, ten times what Kubernetes
// supports: any daemon may write the status of a config, and a wrong number there must
// not silence all the others for days.
const MostNodes = 50_000

// Nodes returns on how many nodes daemons report, as the status of all
// PacemakerConfigs, or of the StartPolicy with the most, told last: from 0, which is
// that it is not known, to MostNodes. It does not block, and is safe for concurrent use.
func (s *Source) Nodes() int {
	most := int64(0)
	if s.policies != nil {
		most = s.policies.nodes()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var nodes int64
	for _, o := range s.objects {
		nodes = min(nodes+believed(o.nodes), MostNodes)
	}
	return int(max(nodes, most))
}

// believed gives a number of nodes that stands in a status, within its bounds.
func believed(nodes int64) int64 { return min(max(nodes, 0), MostNodes) }

// NodeUID returns the UID of this node's Node object, empty until it was seen. It
// does not block, and is safe for concurrent use.
func (s *Source) NodeUID() types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodeUID
}

// Ties returns the names of the configs that have the same priority as the one in
// force and select the node too. It does not block, and is safe for concurrent use.
func (s *Source) Ties() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ties)
}
