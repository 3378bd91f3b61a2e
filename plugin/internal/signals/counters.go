package signals

import (
	"fmt"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

const (
	// shortest is the least time that a reading spans.
	shortest = 100 * time.Millisecond
	// loadEvery is how often the kernel counts the runnable tasks for the load
	// average.
	loadEvery = 5 * time.Second
	// roundOff is by how many seconds two sums over equal times may differ.
	roundOff = 1e-6
)

// counter is what one file contains for one signal at one moment. The signal is how much used
// grew, as a share of how much total grew. Both are in seconds: used is how long the CPUs were busy, or
// tasks waited. For the load average, used is the load itself. If the file cannot be read, err is why.
type counter struct {
	used, total float64
	// worked and podsWorked are for how long all CPUs, and those of the pods, were not idle, if used is a mean over the
	// former with these times as weights, and the signal one over the latter. Otherwise they are zero.
	worked, podsWorked float64
	err                error
}

// counters are the counters of all signals, by signal.
type counters [len(throttle.Signals{})]counter

// moment is one sample of a node.
type moment struct {
	at      time.Time
	refused time.Duration // CPU time that refusals have taken so far
	counters
}

// share returns the value of a signal since an earlier sample, in percent.
func (c counter) share(since counter, signal throttle.Signal) (float64, error) {
	used, total := c.used-since.used, c.total-since.total
	// The kernel documents that iowait can decrease.
	if signal != throttle.SignalIOWait && used < -roundOff {
		return 0, fmt.Errorf("%s: %w: it lost %.6g s", signal, ErrCounter, -used)
	}
	if total <= 0 {
		return 0, fmt.Errorf("%s: %w: its clock gained %.6g s", signal, ErrCounter, total)
	}
	if pods := c.podsWorked - since.podsWorked; pods > 0 {
		used *= max(1, (c.worked-since.worked)/pods) // as if no task waited for the other CPUs
	}
	// used and total are not read at the same instant, so a full stall can be a little more than 100 %.
	return min(100, max(0, 100*used/total)), nil
}
