package plugin

import (
	"sync"
	"time"

	"github.com/prometheus/procfs"
)

// runtimeSpends is what containerd itself, with the programs that it waits for, spent
// there on what it tells the plugin of; without the shims, whose time is not told
// once they are gone.
var runtimeSpends = map[string]time.Duration{
	"RunPodSandbox":      43 * time.Millisecond,
	"RemovePodSandbox":   55 * time.Millisecond,
	"CreateContainer":    11 * time.Millisecond,
	"PostStartContainer": 25 * time.Millisecond,
}

// Bounds of measuring.
const (
	// sampleEvery is the least time between two readings of the runtime's CPU time;
	// after idleAfter without a call the runtime was idle.
	sampleEvery, idleAfter = time.Second, 5 * time.Second
	// enoughSpent is how much has to have been spent for a comparison.
	enoughSpent = time.Second
	// newestCounts is the weight of the newest comparison.
	newestCounts = 0.3
	// leastFactor and mostFactor bound what is believed.
	leastFactor, mostFactor = 0.25, 8.0
)

// runtimeSpending compares what the runtime spends on this node with what the same
// calls cost it where they were measured alone. The CPU time of one refusal cannot be
// seen: it is spread over programs that come and go, beside others that start pods.
// What can be seen is the CPU time of containerd and of all that it has waited for. The
// factor between the two stands for this node's CPU, its runtime and its network. The
// zero value sees no runtime; safe for concurrent use.
type runtimeSpending struct {
	mu      sync.Mutex
	usage   func() (time.Duration, bool) // the runtime's CPU time so far; nil: not to be seen
	last    time.Time                    // of the last reading; zero: none
	lastCPU time.Duration
	pending time.Duration // expected of the calls since the last reading
	due     bool          // it is time for a reading
	number  int           // of the runtime that is seen
	idle    float64       // CPU-seconds per second of a runtime that nobody calls
	// spent is the runtime's CPU time beyond idle since the last comparison, expected
	// what the calls would have cost where they were measured.
	spent, expected time.Duration
	factor          float64 // 0: no comparison yet
}

// factorNow gives the factor, 1 until there is a comparison.
func (s *runtimeSpending) factorNow() (factor float64, measured bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.factor == 0 {
		return 1, false
	}
	return s.factor, true
}

// connected takes over the runtime whose CPU time tells.
func (s *runtimeSpending) connected(procRoot string, runtime processOfNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage, s.last, s.pending, s.spent, s.expected, s.due = nil, time.Time{}, 0, 0, 0, false
	s.number++
	if runtime.pid != 0 {
		s.usage = func() (time.Duration, bool) { return cpuOf(procRoot, runtime) }
	}
}

// called takes note of a call of the runtime that has ended. It reads nothing, and tells
// whether sample is to be called.
func (s *runtimeSpending) called(now time.Time, handler string) (due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.usage == nil {
		return false
	}
	due = !s.due && (s.last.IsZero() || now.Before(s.last) || now.Sub(s.last) >= sampleEvery)
	s.due = s.due || due
	s.pending += runtimeSpends[handler]
	return due
}

// sample reads the runtime's CPU time, if a call said so. Only run calls it.
func (s *runtimeSpending) sample(now time.Time) {
	s.mu.Lock()
	due, usage, number := s.due, s.usage, s.number
	s.due = false
	s.mu.Unlock()
	if !due || usage == nil {
		return
	}
	cpu, ok := usage()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case number != s.number: // of another runtime
	case !ok:
		s.usage = nil
	default:
		s.sampledLocked(now, cpu)
	}
}

func (s *runtimeSpending) sampledLocked(now time.Time, cpu time.Duration) {
	took, used := now.Sub(s.last), cpu-s.lastCPU
	first := s.last.IsZero() || took <= 0 || used < 0
	pending := s.pending
	s.last, s.lastCPU, s.pending = now, cpu, 0
	if first {
		return
	}
	if took >= idleAfter {
		// Nearly all of it was idle: the least that was seen lately is the truest.
		if rate := used.Seconds() / took.Seconds(); s.idle == 0 || rate < s.idle {
			s.idle = rate
		} else {
			s.idle *= 1.05
		}
		return
	}
	s.spent += used - time.Duration(s.idle*float64(took)) // the clock's grain evens out
	s.expected += pending
	if s.expected >= enoughSpent {
		s.compareLocked()
	}
}

func (s *runtimeSpending) compareLocked() {
	factor := min(max(float64(s.spent)/float64(s.expected), leastFactor), mostFactor)
	if s.factor == 0 {
		s.factor = factor
	} else {
		s.factor += newestCounts * (factor - s.factor)
	}
	s.spent, s.expected = 0, 0
}

// cpuOf gives the CPU time of a process and of all that it has waited for; false: it
// is gone.
func cpuOf(procRoot string, process processOfNode) (time.Duration, bool) {
	fs, err := procfs.NewFS(procRoot)
	if err != nil {
		return 0, false
	}
	proc, err := fs.Proc(process.pid)
	if err != nil {
		return 0, false
	}
	stat, err := proc.Stat()
	if err != nil || stat.Starttime != process.started {
		return 0, false
	}
	return time.Duration(int(stat.UTime)+int(stat.STime)+stat.CUTime+stat.CSTime) * tick, true
}
