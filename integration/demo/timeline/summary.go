package timeline

import "time"

// Summary has the figures of a run.
type Summary struct {
	// Pods is the number of pods, Ready the number of pods that were ready at the end.
	Pods, Ready int
	// AllReady is when the last pod became ready. 0: some pods did not.
	AllReady time.Duration
	// MeanReady is the mean time until a pod was ready. It counts pods that were not ready as ready
	// at the end of the run, so it is a lower bound if Ready < Pods.
	MeanReady time.Duration
	// Peak is the highest number of starts at a time.
	Peak int
	// Kills is the number of processes that the liveness probe ended.
	Kills int
	// LostTime is the sum of the times of processes that ended before they were ready.
	LostTime time.Duration
	// Refused is the number of requests that the runtime refused because of the daemon.
	Refused int
	// Pressure is the share of the run, 0 to 1, in which some task waited for a CPU. HasPressure is
	// false if the kernel does not measure it.
	Pressure    float64
	HasPressure bool
}

// Summary computes the figures of the run.
func (r Run) Summary() Summary {
	s := Summary{Pods: len(r.Pods), Peak: r.Peak()}
	var last, sum time.Duration
	for _, p := range r.Pods {
		at, ok := p.ReadyAt()
		if !ok {
			at = r.Length
		} else {
			s.Ready++
		}
		sum += at
		last = max(last, at)
		s.Kills += p.Kills()
		s.Refused += p.Refused
		for _, st := range p.Starts {
			if st.Ready == 0 && st.Ended > 0 {
				s.LostTime += st.Ended - st.Began
			}
		}
	}
	if s.Pods > 0 {
		s.MeanReady = sum / time.Duration(s.Pods)
	}
	if s.Ready == s.Pods {
		s.AllReady = last
	}
	s.Pressure, s.HasPressure = meanPressure(r.Pressure)
	return s
}

func meanPressure(windows []Pressure) (share float64, ok bool) {
	var stalled, all float64
	for _, w := range windows {
		length := (w.To - w.From).Seconds()
		stalled += w.Some * length
		all += length
	}
	if all <= 0 {
		return 0, false
	}
	return stalled / all, true
}
