package crd

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Fault returns what is wrong with the newest version of the named PacemakerConfig; empty: nothing,
// or there is none. It does not block, and is safe for concurrent use.
func (s *Source) Fault(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[name]; o != nil {
		return o.fault
	}
	return ""
}

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
