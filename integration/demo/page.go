package demo

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/report"
	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

// page returns the content of the report.
func (s *show) page(runs []timeline.Run, rows []timeline.Row) report.Page {
	h := s.herd
	earliest, latest := probeKills()
	return report.Page{
		Title: fmt.Sprintf("%d pods have to start on one node, unpaced and paced", h.Pods),
		Lead: fmt.Sprintf("Each pod burns %.0f CPU-seconds before it is ready, and all of them share %s, so the best possible "+
			"time for the herd is %.0f s. A liveness probe kills what is not ready %.0f to %.0f s after its process started. "+
			"The first run is unpaced. In the second, pod-pacemaker lets %d pods start at a time.",
			h.Burn.Seconds(), cpus(len(h.CPUs)), h.Ideal().Seconds(), earliest.Seconds(), latest.Seconds(), h.Limit),
		Brief: fmt.Sprintf("Each needs %.0f CPU-seconds to be ready, on %s: %.0f s at best. A liveness probe kills what is not ready after %.0f to %.0f s.",
			h.Burn.Seconds(), cpus(len(h.CPUs)), h.Ideal().Seconds(), earliest.Seconds(), latest.Seconds()),
		Warning: warning(runs),
		Rows:    rows, Runs: runs, Ideal: h.Ideal(),
		Notes: s.notes(),
		Facts: []report.Fact{
			{Name: "Pods", Value: "containers of a throw-away containerd"},
			{Name: "Machine", Value: fmt.Sprintf("%s, Linux %s, %s", cpus(runtime.NumCPU()), kernel(), runtime.GOARCH)},
			{Name: "Other work", Value: otherWork(runs)},
			{Name: "Time", Value: time.Now().UTC().Format("2 January 2006, 15:04 UTC")},
		},
	}
}

func (s *show) notes() []string {
	return []string{
		"The times are the pods' own: each process logs when it starts and when it is ready. The ends of killed processes are " +
			"reported by the runtime. Nothing here comes from the daemon's own counters. If some pods were never ready, the mean " +
			"counts them as ready at the end of the run, so it is a lower bound.",
		fmt.Sprintf("A run is stopped when each pod that is not ready was killed %d times since the last pod became ready, and after %.0f s, "+
			"three times the ideal.", timeline.HopelessKills, s.herd.longest().Seconds()),
		fmt.Sprintf("There is no kubelet: the demo plays its part, with kubelet's numbers. It requests all pods at once, and again %.0f "+
			"to %.0f s after a refusal. Its liveness probe (initialDelaySeconds %.0f, periodSeconds %.0f, failureThreshold %d) stops a "+
			"process that is not ready in time. The process is restarted: at once the first time, then after %.0f s, and after "+
			"twice as long each further time.",
			retryInterval.Seconds(), 1.5*retryInterval.Seconds(), probeDelay.Seconds(), probePeriod.Seconds(), probeFailures, firstBackOff.Seconds()),
		"The daemon runs standalone, without an API server to report ready pods. It considers a pod started when its " +
			"container has run for 10 s and the pod used less than 0.2 CPUs over the last 2 s, so each slot is held for about 2.5 s longer than needed. In a " +
			"cluster it sees readiness, and comes nearer to the ideal.",
	}
}

// otherWork describes what else the machine did, including the container runtime's own work.
func otherWork(runs []timeline.Run) string {
	var parts []string
	for _, r := range runs {
		parts = append(parts, fmt.Sprintf("%.0f %% of its CPUs (%s)", 100*r.OtherWork, r.Name))
	}
	return strings.Join(parts, ", ")
}

// kernel returns the release of the running kernel.
func kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "of unknown release"
	}
	return unix.ByteSliceToString(name.Release[:])
}
