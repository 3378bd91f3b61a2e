package demo

import (
	"context"
	"fmt"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

// introduce says what will happen.
func (s *show) introduce() {
	h := s.herd
	s.say("A herd of %d pods: each burns %.0f CPU-seconds before it is ready, all share %s. Ideal: %.0f s.",
		h.Pods, h.Burn.Seconds(), cpus(len(h.CPUs)), h.Ideal().Seconds())
	s.say("The first run is unpaced. In the second, pod-pacemaker lets %d start at a time.", h.Limit)
	earliest, latest := probeKills()
	s.say("There is no kubelet here; the demo plays its part. It asks again %.0f to %.0f s after a refusal. A liveness probe kills a",
		retryInterval.Seconds(), 1.5*retryInterval.Seconds())
	s.say("process that is not ready %.0f to %.0f s after its start, and the demo restarts it with kubelet's back-off.",
		earliest.Seconds(), latest.Seconds())
	s.say("A run ends when all pods are ready; when each pod that is not was killed %d times since the last one became ready; or after %.0f s.",
		timeline.HopelessKills, h.longest().Seconds())
}

// warnIfBusy looks for other work, which would spoil the figures.
func (s *show) warnIfBusy(ctx context.Context) error {
	busy, err := busyShare(ctx)
	if err == nil && busy >= muchBusy {
		s.say("This machine is busy: other work takes %.0f %% of its CPUs. Figures are better on an idle one.", 100*busy)
	}
	return err
}

// warning reports other work that spoiled the figures, or returns nothing.
func warning(runs []timeline.Run) string {
	worst := runs[0]
	for _, r := range runs {
		if r.OtherWork > worst.OtherWork {
			worst = r
		}
	}
	if worst.OtherWork < muchBusy {
		return ""
	}
	return fmt.Sprintf("Other work took %.0f %% of this machine's CPUs during the %s run: on an idle machine the figures are better.",
		100*worst.OtherWork, worst.Name)
}

func cpus(n int) string {
	if n == 1 {
		return "1 CPU"
	}
	return fmt.Sprintf("%d CPUs", n)
}

// conclude prints the table and writes the report.
func (s *show) conclude(runs []timeline.Run) error {
	rows := timeline.Compare(s.herd.Ideal(), runs...)
	s.say("")
	if err := timeline.WriteTable(s.Out, rows); err != nil {
		return err
	}
	for _, r := range runs {
		if r.NoPressure != "" {
			s.say("\nNo CPU pressure was measured: %s. The kernel needs CONFIG_PSI, and psi=1 on its command line where that is off.", r.NoPressure)
			break
		}
	}
	if w := warning(runs); w != "" {
		s.say("\n%s", w)
	}
	path, err := s.report.write(s.page(runs, rows))
	if err != nil {
		return err
	}
	s.say("\nBoth timelines, drawn: %s", path)
	return nil
}
