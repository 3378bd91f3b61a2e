package admin

import "github.com/pod-pacemaker/pod-pacemaker/throttle"

// Signal is one thing measured of the node.
type Signal struct {
	// Name is what [throttle.Signal] calls it.
	Name string `json:"name"`
	// Value is in percent of the node, 0 to 100; of "load" in processes. Absent: it
	// was not measured, yet.
	Value *float64 `json:"value,omitempty"`
	// Threshold is the value from which it holds starts; absent: no limit is set.
	Threshold float64 `json:"threshold,omitempty"`
	// SpanSeconds is the time up to now over which it was measured; absent with
	// Value.
	SpanSeconds Seconds `json:"spanSeconds,omitempty"`
	// Blind is why it cannot be measured: its limit is open then. Absent: it can be.
	Blind string `json:"blind,omitempty"`
}

// NewSignals returns the signals in the order of [throttle.Signal], with the limits
// that the settings set.
func NewSignals(signals throttle.Signals, s throttle.Settings) []Signal {
	all := make([]Signal, 0, len(signals))
	for i, r := range signals {
		signal := throttle.Signal(i)
		v := Signal{Name: signal.String(), Threshold: max(0, s.Signals[signal].Max)}
		switch {
		case r.Err != nil:
			v.Blind = r.Err.Error()
		case !r.To.IsZero():
			v.Value, v.SpanSeconds = &r.Value, seconds(r.To.Sub(r.From))
		}
		all = append(all, v)
	}
	return all
}
