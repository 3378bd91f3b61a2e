package crd

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
)

// Remember puts in force what l holds, until the API server answers, and has l
// keep what that says. A file that is damaged, or another node's, is logged and
// left out. It is to be called before Run, once.
func (s *Source) Remember(l *LastGood) {
	s.lastGood = l
	found, err := l.load()
	if err != nil {
		s.log.WithError(err).Warn("the last good PacemakerConfig on disk is left out: until the API server answers, the fallback is in force, if there is one")
		return
	}
	if found == nil {
		return
	}
	s.recall(found)
	s.tell()
	s.log.WithField("config", s.current.Name).Info("until the API server answers, what it said last is in force")
}

// recall puts in force what was on disk.
func (s *Source) recall(found *remembered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disk = found
	if found.config != nil {
		s.current = fromDisk(found.config)
	}
}

// Told is closed once it is known which config this node has, maybe none: it was
// remembered, or the API server has answered. To answer that it serves no
// PacemakerConfigs, or not to this daemon, is an answer too: what is in force
// then stays so, and nobody can say how long.
func (s *Source) Told() <-chan struct{} { return s.told }

func (s *Source) tell() { s.tellOnce.Do(func() { close(s.told) }) }

// refused takes note that the API server will not tell.
func (s *Source) refused() {
	select {
	case <-s.told:
		return
	default:
	}
	if s.Current().Origin == OriginNone {
		s.log.Warn("the API server does not tell the PacemakerConfigs: no limit of one is in force until it does")
	}
	s.tell()
}

// awaitSynced waits until everything of w was read; false: ctx ended first. What
// was remembered of another Node object of the same name goes meanwhile.
func (s *Source) awaitSynced(ctx context.Context, w informer.Informer) bool {
	for {
		select {
		case <-w.Synced():
			return true
		case <-s.changed:
			s.forgetOtherNode()
		case <-ctx.Done():
			return false
		}
	}
}

// forgetOtherNode drops what was remembered if that was of another Node.
func (s *Source) forgetOtherNode() {
	defer s.caught("forgetOtherNode")
	if s.dropOtherNode() {
		s.log.WithField("node", s.node).Warn("the last good PacemakerConfig on disk is left out: it is of another node of this name")
		s.onChange(s.Current())
	}
}

// dropOtherNode tells whether what was remembered was of another Node, and gone now.
func (s *Source) dropOtherNode() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	others := s.disk != nil && s.disk.nodeUID != "" && s.nodeUID != "" && s.disk.nodeUID != s.nodeUID
	if others {
		s.disk = nil
		s.current = FromFile(s.fallback)
	}
	return others
}

// recallLocked takes the version on disk for the last good one of an object of
// which this process has seen none. s.mu must be held.
func (s *Source) recallLocked(u *unstructured.Unstructured) {
	if s.disk == nil || s.disk.config == nil || s.objects[u.GetName()] != nil {
		return
	}
	if c := s.disk.config; c.Name == u.GetName() && c.UID == u.GetUID() {
		s.objects[c.Name] = &object{uid: c.UID, good: c}
	}
}

// keep keeps on disk what the API server says. It is called from one goroutine.
func (s *Source) keep(said remembered) {
	if s.lastGood == nil {
		return
	}
	fault := ""
	if err := s.lastGood.save(said); err != nil {
		fault = err.Error()
	}
	if fault != "" && fault != s.unkept {
		s.log.WithField("reason", fault).Warn("the PacemakerConfig cannot be kept on disk: after a reboot it is not in force before the API server answers")
	}
	s.unkept = fault
}
