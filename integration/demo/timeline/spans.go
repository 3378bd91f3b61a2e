package timeline

import "time"

// Kind is what a pod does during a span.
type Kind string

// The kinds of spans.
const (
	// Waiting is the time without a process: before the first one, and between
	// two.
	Waiting Kind = "waiting"
	// Starting is a process that is not ready yet.
	Starting Kind = "starting"
	// Lost is a start that ended before it was ready.
	Lost Kind = "lost"
	// Ready is a process that serves.
	Ready Kind = "ready"
)

// Span is a time in which a pod did one thing.
type Span struct {
	Kind     Kind
	From, To time.Duration
	// Killed says that the liveness probe ended the process at To.
	Killed bool
}

// Spans returns the spans of one pod, which cover the whole run without gaps.
func (r Run) Spans(p Pod) []Span {
	var spans []Span
	at := time.Duration(0)
	add := func(kind Kind, to time.Duration, killed bool) {
		if to > at || killed {
			spans = append(spans, Span{Kind: kind, From: at, To: max(at, to), Killed: killed})
			at = max(at, to)
		}
	}
	for _, s := range p.Starts {
		add(Waiting, s.Began, false)
		end := s.Ended
		if end == 0 {
			end = r.Length
		}
		switch {
		case s.Ready > 0:
			add(Starting, s.Ready, false)
			add(Ready, end, s.Killed)
		case s.Ended > 0:
			add(Lost, end, s.Killed)
		default:
			add(Starting, end, false)
		}
	}
	add(Waiting, r.Length, false)
	return spans
}
