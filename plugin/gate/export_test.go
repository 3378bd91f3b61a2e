package gate

import "time"

// With sets times that are too long for a test. Zero leaves a value as it is.
func (s *Server) With(hello, write, pause time.Duration) *Server {
	for _, d := range []struct {
		to   *time.Duration
		from time.Duration
	}{{&s.helloTimeout, hello}, {&s.writeTimeout, write}, {&s.pause, pause}} {
		if d.from != 0 {
			*d.to = d.from
		}
	}
	return s
}

// WithAliveEvery sets the time between two alive lines.
func (s *Server) WithAliveEvery(d time.Duration) *Server {
	s.aliveEvery = d
	return s
}

// AliveEvery returns the time between two alive lines.
func (s *Server) AliveEvery() time.Duration { return s.aliveEvery }
