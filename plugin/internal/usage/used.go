package usage

import (
	"math"
	"time"
)

// usage is what a pod has used of the node until a moment.
type usage struct {
	at  time.Time
	cpu float64 // CPU-seconds
	// inLine is for how many seconds each thread, or the whole pod, waited for a CPU.
	inLine figures
	// moved is how many bytes each process, or the whole pod, moved to and from disks; nil if that is not known.
	moved figures
}

// figures are a figure of each thread or process, or of the whole pod.
type figures = map[thread]float64

// thread names a thread, or a process if id is zero; its zero value stands for the whole pod.
type thread struct{ process, id int }

// use is what a pod used between two usages.
type use struct {
	cpu    float64 // CPU-seconds
	inLine float64 // seconds in which the pod waited for a CPU
	moved  float64 // bytes
}

// wanted returns the CPU-seconds that the pod used or waited for.
func (u use) wanted() float64 { return u.cpu + u.inLine }

// since returns what was used since an earlier usage, without threads and processes that ended meanwhile.
func (u usage) since(earlier usage) use {
	return use{
		cpu:    max(0, u.cpu-earlier.cpu),
		inLine: most(u.inLine, earlier.inLine, u.at.Sub(earlier.at).Seconds()),
		moved:  most(u.moved, earlier.moved, math.Inf(1)),
	}
}

// most returns by how much the figures of the processes have grown; a thread counts for at most limit. Of each process,
// the thread whose figure has grown most counts. If that is time in line, a sum would also count the threads of a
// runtime that only wake up now and then. On full CPUs these wait for longer than they run, and a pod that keeps one
// core busy would count as 1.3 to 1.8.
func most(now, before figures, limit float64) (sum float64) {
	processes := map[int]float64{}
	for t, n := range now { // a thread that was not seen before may have waited for long
		processes[t.process] = max(processes[t.process], min(n-before[t], limit))
	}
	for _, n := range processes {
		sum += n
	}
	return sum
}

// samples are the usages of one pod, the oldest first.
type samples []usage

// add returns the samples with a later one, without those that are too old for the window.
func (s samples) add(now usage, window time.Duration) samples {
	s = append(s, now)
	for len(s) > 1 && now.at.Sub(s[1].at) >= window {
		s = s[1:]
	}
	return s
}

// usedIn returns what was used in the last window, or over the time between two samples if that is longer. full is
// false while the samples do not span the window.
func (s samples) usedIn(window time.Duration) (took time.Duration, used use, full bool) {
	if len(s) == 0 {
		return 0, use{}, false
	}
	first, last := s[0], s[len(s)-1]
	for _, u := range s {
		if last.at.Sub(u.at) < window {
			break
		}
		first = u
	}
	took = last.at.Sub(first.at)
	return took, last.since(first), took >= window
}
