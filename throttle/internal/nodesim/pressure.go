package nodesim

import "math"

// load is what the kernel accounts at one moment: shares, 0 to 1.
type load struct{ cpu, cpuSome, ioSome float64 }

// account computes the load.
//
// The kernel accounts "some" for each CPU, as the share of time in which a task waits there. It takes the mean over
// the CPUs, weighted by the time in which they are not idle. With twice as many runnable tasks as CPUs every CPU has
// a queue. With one task more than CPUs only one CPU has a queue. On the recording machine with 2 CPUs, 3 burning
// processes make 50 %, 4 make 99 %. Pods make a little less (4 make 78 %, 6 to 16 make 80 to 95 %), because the CPUs'
// queues are not always even. A task that its CPU limit holds back waits, too.
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

// stretch is how much longer the short bursts of serving pods and of the system stay on a CPU that they share with a
// start.
const stretch = 1.5

// uneven is the share of CPUs with a queue where even queues would give x.
func uneven(x float64) float64 { return min(0.92, x/math.Cbrt(1+x*x*x)) }
