package nodesim

// Kind describes a number of like pods. The recordings have it as JSON, with the same names.
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
	// CPULimit is the CPU limit of its container, cores; 0 if it has none.
	CPULimit float64
	// ServeCores is how much CPU it uses once it is ready.
	ServeCores float64
	// Share is which part of the CPUs it gets once it is ready.
	Share Share
	// Liveness reports whether a liveness probe kills the pod if it does not answer in time.
	Liveness bool
	// Patience is the time after which the probe kills, seconds. 0 means that the probe of the recorded herds kills:
	// initialDelaySeconds 10, periodSeconds 3, failureThreshold 3.
	Patience float64
}

// Share is which part of the CPUs a pod that is ready gets.
type Share int

const (
	// Before means that it goes before pods that start, as one with a CPU request does.
	Before Share = iota
	// Evenly means that it has the weight of a pod that starts.
	Evenly
	// Behind means that it gets what pods that start leave, as work of a low priority does.
	Behind
)

// Scenario is a node, and the pods that it starts.
type Scenario struct {
	Cores int
	// DiskStreams is how many pods can read at a time without sharing. 0 means 1.
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
