package observe

import (
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// Learned is what the start of a pod took. It is logged at the level debug, and counted. A start that was killed is only
// logged: it would have taken more.
type Learned struct {
	Pod
	Took     costs.Start
	Basis    string     // of the estimate: Owner, Image, Revisions, Node or None
	Expected costs.Cost // when it began
}

func (e Learned) report(o *Observer) {
	e.log(o).WithFields(logrus.Fields{
		"cpu_ms": e.Took.CPU.Milliseconds(), "wall_ms": e.Took.Wall.Milliseconds(), "waited_ms": e.Took.Waited.Milliseconds(),
		"idle_ms": e.Took.Idle.Milliseconds(), "peak_cores": e.Took.Peak, "disk_bytes": e.Took.Disk, "killed": e.Took.Killed,
		"basis": e.Basis, "expected_cpu_ms": int64(1000 * e.Expected.CPU.Mean),
	}).Debugf("learned what the start of pod %s took", e.Name)
	if e.Took.Killed {
		return
	}
	cpu := e.Took.CPU.Seconds()
	o.metrics.startCPU.WithLabelValues(e.Basis).Add(cpu)
	o.metrics.expectedCPU.WithLabelValues(e.Basis).Add(e.Expected.CPU.Mean)
	if e.Expected.CPU.Mean > 0 {
		o.metrics.costRatio.WithLabelValues(e.Basis).Observe(cpu / e.Expected.CPU.Mean)
	}
}

// Unmeasured is a start of which cannot be read what it uses, once that is new. It is logged.
type Unmeasured struct {
	Pod
	Why    error
	RunFor time.Duration // after its containers have run for this long, the start ends without a report of kubelet
}

func (e Unmeasured) report(o *Observer) {
	e.log(o).WithError(e.Why).Warnf("cannot read what pod %s uses: it counts as making progress, so its slot is not lent, and nothing is learned of it; without a report of kubelet, its start ends when its containers have run for %s", e.Name, e.RunFor)
}
