package admin

import "github.com/pod-pacemaker/pod-pacemaker/throttle"

// Signal is one measured signal of the node.
type Signal struct {
	// Name is the name that [throttle.Signal] has.
	Name string `json:"name"`
	// Value is in percent of the node, 0 to 100; for "load" it is in processes. Absent: not measured yet.
	Value *float64 `json:"value,omitempty"`
	// Threshold is the value from which the signal holds starts; absent if no limit is set.
	Threshold float64 `json:"threshold,omitempty"`
	// SpanSeconds is the time over which the value was measured; absent if Value is.
	SpanSeconds Seconds `json:"spanSeconds,omitempty"`
	// Blind is why the signal cannot be measured; its limit then holds no start. Absent if it can.
	Blind string `json:"blind,omitempty"`
}

// NewSignals returns the signals in the order of [throttle.Signal], with the limits of the settings.
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
