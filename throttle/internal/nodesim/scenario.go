package nodesim

// Kind describes so many like pods. Its JSON names are those of the recordings.
type Kind struct {
	Name  string
	Count int
	// CPUSeconds is the CPU time that a pod uses before it is ready, by one thread.
	CPUSeconds float64
	// Wait is how long it waits before that without using anything, seconds.
	Wait float64
	// IOSeconds is how long it reads from the disk before it uses the CPU, if it
	// has a stream of the disk for itself.
	IOSeconds float64
	// CPULimit is the CPU limit of its container, cores. 0: none.
	CPULimit float64
	// ServeCores is how much CPU it uses once it is ready.
	ServeCores float64
	// Liveness: a liveness probe kills it, if it does not answer in time.
	Liveness bool
	// Patience is the time after which that happens, seconds. 0: that of the
	// recorded herds, initialDelaySeconds 10, periodSeconds 3, failureThreshold 3.
	Patience float64
}

// Scenario is a node, and what it is asked to start.
type Scenario struct {
	Cores int
	// DiskStreams is how many pods can read at a time before they share. 0: 1.
	DiskStreams float64
	// Running pods are ready when the herd is created.
	Running []Kind
	// Herd is created at once, in this order.
	Herd []Kind
	// Shuffled: the herd comes in an order that Seed gives.
	Shuffled bool
	// Seed of the probes' phases, of kubelet's delays and of the sensors' noise.
	Seed uint64
}

// Pods is the size of the herd.
func (s Scenario) Pods() (n int) {
	for _, k := range s.Herd {
		n += k.Count
	}
	return n
}
