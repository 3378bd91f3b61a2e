package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Herd describes the pods that the demo starts.
type Herd struct {
	// Pods is the number of pods.
	Pods int
	// CPUs are the CPUs that the pods are confined to, so that the result is the same on every
	// machine.
	CPUs []int
	// Burn is the CPU time that a pod uses before it is ready, on at most one CPU.
	Burn time.Duration
	// Limit is the number of starts at a time in the paced run.
	Limit int
}

// Constants of every herd.
const (
	// ideal is the time in which the CPUs can do the work of the whole herd.
	ideal = 48 * time.Second
	// leastPods and leastLimit are the values for one or two CPUs.
	leastPods, leastLimit = 12, 2
	// podsPerCPU keeps the burn of a pod at 8 CPU-seconds on more CPUs.
	podsPerCPU = 6
)

// NewHerd returns the herd for these CPUs. There must be at least one.
func NewHerd(cpus []int) Herd {
	pods := max(leastPods, podsPerCPU*len(cpus))
	return Herd{
		Pods: pods, CPUs: cpus,
		Burn:  ideal * time.Duration(len(cpus)) / time.Duration(pods),
		Limit: max(leastLimit, len(cpus)),
	}
}

// Ideal is the time until all pods are ready if the CPUs are never idle and do no other work.
func (h Herd) Ideal() time.Duration {
	return h.Burn * time.Duration(h.Pods) / time.Duration(len(h.CPUs))
}

// longest is when the demo stops a run that is not over.
func (h Herd) longest() time.Duration { return 3 * h.Ideal() }

// podName returns the name of the i-th pod, from 0.
func (h Herd) podName(i int) string {
	return fmt.Sprintf("herd-%0*d", len(strconv.Itoa(h.Pods)), i+1)
}

// arguments returns the arguments of the herd program.
func (h Herd) arguments(port int) []string {
	return []string{"--cpu-seconds", fmt.Sprint(h.Burn.Seconds()), "--port", strconv.Itoa(port)}
}

// cpuset returns the CPUs in the format of cgroups: "0,1".
func (h Herd) cpuset() string {
	var list []string
	for _, c := range h.CPUs {
		list = append(list, strconv.Itoa(c))
	}
	return strings.Join(list, ",")
}

// Kubelet's numbers, for the part of kubelet that the demo plays.
const (
	// probeDelay, probePeriod and probeFailures are the liveness probe's initialDelaySeconds,
	// periodSeconds and failureThreshold. A process that is not ready is stopped 16 to 19 s after
	// its start, depending on when in the period it started.
	probeDelay, probePeriod, probeFailures = 10 * time.Second, 3 * time.Second, 3
	// stopGrace is the time between SIGTERM and SIGKILL.
	stopGrace = 2 * time.Second
	// retryInterval is the wait after a refusal; up to half of it is added at random.
	retryInterval = 10 * time.Second
	// firstBackOff is the wait before the second restart. The first restart has no wait, and each
	// further one waits twice as long, up to lastBackOff.
	firstBackOff, lastBackOff = 10 * time.Second, 5 * time.Minute
)

// probeKills returns the earliest and the latest time after its start at which a process that never
// gets ready is stopped.
func probeKills() (earliest, latest time.Duration) {
	earliest = probeDelay + (probeFailures-1)*probePeriod
	return earliest, earliest + probePeriod
}
