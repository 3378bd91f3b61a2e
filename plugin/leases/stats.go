package leases

import "errors"

// stats count since the start.
type stats struct {
	calls                              map[verb]uint64
	conflicts, failures, expired, lost uint64
}

func (s *stats) failed(a answer) {
	if errors.Is(a.err, errConflict) {
		s.conflicts++
	} else {
		s.failures++
	}
}
