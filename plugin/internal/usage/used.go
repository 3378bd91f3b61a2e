package usage

import "time"

// usage is what a pod has used of the node since it began.
type usage struct {
	at  time.Time
	cpu float64 // CPU-seconds
	// inLine is for how many seconds each thread, or under its own name the whole
	// pod, stood in line for a CPU.
	inLine map[string]float64
	// moved is how many bytes each process, or under its own name the whole pod,
	// moved to and from disks.
	moved map[string]float64
}

// use is what a pod used from one usage to a later one.
type use struct {
	cpu    float64 // CPU-seconds
	inLine float64 // seconds
	moved  float64 // bytes
}

// wanted is the CPU-seconds that would have been used without a line.
func (u use) wanted() float64 { return u.cpu + u.inLine }

// since returns what was used since an earlier usage. Threads and processes that have
// ended since are left out.
func (u usage) since(earlier usage) use {
	return use{
		cpu:    u.cpu - earlier.cpu,
		inLine: more(u.inLine, earlier.inLine),
		moved:  more(u.moved, earlier.moved),
	}
}

func more(now, before map[string]float64) (sum float64) {
	for name, n := range now {
		sum += max(0, n-before[name])
	}
	return sum
}

// samples are the usages of one pod, the oldest first.
type samples []usage

// add returns the samples with a later one, as far as they are needed to look back
// over the window.
func (s samples) add(now usage, window time.Duration) samples {
	s = append(s, now)
	for len(s) > 1 && now.at.Sub(s[1].at) >= window {
		s = s[1:]
	}
	return s
}

// over returns what was used over the last window, or over the time between the
// samples where they are further apart. full is false while they do not reach back
// so far.
func (s samples) over(window time.Duration) (took time.Duration, used use, full bool) {
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
