// Package timeline records what happened to a herd of pods in one run, and computes figures from
// it. All times are durations since the run began. Nothing here blocks, and no method changes its
// value.
package timeline

import "time"

// Run is one run of a herd.
type Run struct {
	// Name is the name of the run: "unpaced" or "paced".
	Name string
	// Limit is the allowed number of starts at a time. 0: any number.
	Limit int
	// Length is how long the herd was watched.
	Length time.Duration
	// Pods are in the order of their requests, which all came at time zero.
	Pods []Pod
	// Pressure is the kernel's CPU pressure in consecutive windows. If it is empty, NoPressure says
	// why.
	Pressure   []Pressure
	NoPressure string
	// OtherWork is the share of the machine's CPU time, 0 to 1, that was not spent on the pods'
	// processes.
	OtherWork float64
}

// Pod is one pod of the herd.
type Pod struct {
	Name string
	// Starts are the pod's processes, one after the other.
	Starts []Start
	// Refused counts the requests of this pod that the runtime refused because it was not the pod's
	// turn.
	Refused int
}

// Start is one process of a pod.
type Start struct {
	// Began is when the process started, by its own clock.
	Began time.Duration
	// Ready is when the process was ready, by its own clock. 0: not within the run.
	Ready time.Duration
	// Ended is when the process ended. 0: not within the run.
	Ended time.Duration
	// Killed says that the liveness probe ended the process.
	Killed bool
}

// Pressure is a window of time and the share of it, 0 to 1, in which some task of the machine
// waited for a CPU.
type Pressure struct {
	From, To time.Duration
	Some     float64
}

// startedUntil returns the end of the start: ready, ended, or the end of the run.
func (s Start) startedUntil(length time.Duration) time.Duration {
	switch {
	case s.Ready > 0:
		return s.Ready
	case s.Ended > 0:
		return s.Ended
	default:
		return length
	}
}

// ReadyAt returns when the pod became ready for good. ok is false if it was not ready at the end of
// the run.
func (p Pod) ReadyAt() (at time.Duration, ok bool) {
	if len(p.Starts) == 0 {
		return 0, false
	}
	last := p.Starts[len(p.Starts)-1]
	return last.Ready, last.Ready > 0 && last.Ended == 0
}

// Kills counts the processes of the pod that the liveness probe ended.
func (p Pod) Kills() int {
	n := 0
	for _, s := range p.Starts {
		if s.Killed {
			n++
		}
	}
	return n
}

// Until returns the pod as it was known at a time. It leaves out later events.
func (p Pod) Until(end time.Duration) Pod {
	known := Pod{Name: p.Name, Refused: p.Refused}
	for _, s := range p.Starts {
		if s.Began > end {
			break
		}
		if s.Ready > end {
			s.Ready = 0
		}
		if s.Ended > end {
			s.Ended, s.Killed = 0, false
		}
		known.Starts = append(known.Starts, s)
	}
	return known
}
