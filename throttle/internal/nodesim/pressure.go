package nodesim

import "math"

// load is what the kernel accounts at a moment: shares, 0 to 1.
type load struct{ cpu, cpuSome, ioSome float64 }

// account computes the load.
//
// The kernel accounts "some" for each CPU, as the share of time in which a task
// waits there, and takes the mean over the CPUs weighted by the time that they are
// not idle. So with as many more runnable tasks than CPUs as there are CPUs every
// CPU has a queue, and with one more task only one of them has: on the recording
// machine with 2 CPUs 3 burning processes make 50 %, 4 make 99 %. Pods make a
// little less (4 make 78 %, 6 to 16 make 80 to 95 %), since the CPUs' queues are
// not always even. A task that its CPU limit holds waits, too.
func (n *node) account(hungry []*pod, readers, used float64) {
	cores := n.cores()
	wanted, limited, held := stretch*backgroundCores, 0.0, 0.0
	for _, p := range hungry {
		if p.does() == serves {
			wanted += stretch * p.most()
		} else {
			wanted += p.most()
		}
		if t := p.throttled(); t > 0 {
			limited++
			held += t
		}
	}
	n.load.cpu = used / cores
	queued := uneven(max(0, wanted-cores) / cores)
	some := 0.0
	if limited > 0 {
		on := min(cores, limited)
		some = held / limited * on / (on + (cores-on)*n.load.cpu)
	}
	n.load.cpuSome = 1 - (1-queued)*(1-some)
	blocked := min(cores, readers) / cores
	n.load.ioSome = 0
	if blocked > 0 {
		n.load.ioSome = blocked / (1 - (1-n.load.cpu)*(1-blocked))
	}
}

// stretch is how much longer than alone the short bursts of pods that serve and of
// the system stay on a CPU that they share with a start.
const stretch = 1.5

// uneven is the share of CPUs with a queue where even queues would make x.
func uneven(x float64) float64 { return min(0.92, x/math.Cbrt(1+x*x*x)) }
