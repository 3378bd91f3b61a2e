package nodesim

// Kind describes a number of like pods. Its JSON names are those of the recordings.
type Kind struct {
	Name  string
	Count int
	// CPUSeconds is the CPU time that a pod uses before it is ready, by one thread.
	CPUSeconds float64
	// Wait is how long a pod waits before that without using anything, seconds.
	Wait float64
	// LoadSeconds is how long it reads from the disk before it waits, with a stream of the disk for itself, as a pod
	// loads its program. It is a mean: each pod reads between nothing and twice as much, as the page cache may have
	// the rest.
	LoadSeconds float64
	// IOSeconds is how long it reads from the disk after it has waited, with a stream of the disk for itself.
	IOSeconds float64
	// CPULimit is the CPU limit of its container, cores. 0: none.
	CPULimit float64
	// ServeCores is how much CPU it uses once it is ready.
	ServeCores float64
	// Liveness: a liveness probe kills the pod if it does not answer in time.
	Liveness bool
	// Patience is the time after which the probe kills, seconds. 0: that of the recorded herds, initialDelaySeconds
	// 10, periodSeconds 3, failureThreshold 3.
	Patience float64
}

// Scenario is a node, and the pods that it starts.
type Scenario struct {
	Cores int
	// DiskStreams is how many pods can read at a time without sharing. 0: 1.
	DiskStreams float64
	// Running pods are ready when the herd is created.
	Running []Kind
	// Herd is created at once, in this order.
	Herd []Kind
	// Shuffled: Seed gives the order of the herd.
	Shuffled bool
	// Seed sets the probes' phases, kubelet's delays and the sensors' noise.
	Seed uint64
}

// Pods is the size of the herd.
func (s Scenario) Pods() (n int) {
	for _, k := range s.Herd {
		n += k.Count
	}
	return n
}
