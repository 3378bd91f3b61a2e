package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/cpu"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// coresEvery is how often the daemon looks which CPUs pods can use.
const coresEvery = 30 * time.Second

// Cores finds the CPUs that the pods of this node can use, as [cores.Finder.Find] does. podCgroup is the cgroup of one of
// them; it may be empty.
func (o Options) Cores(podCgroup string) (cores.Cores, error) {
	return cores.Finder{
		Sys: "/sys", Cgroup: o.CgroupRoot, InPod: o.InCluster, PodCgroup: podCgroup, CPUManager: cores.CPUManagerState,
	}.Find()
}

// followCores looks again and again which CPUs pods can use, and puts the configuration in force for them if they have
// changed, until ctx ends. It then returns nil. Once they were known in full, a file that cannot be read changes nothing.
func (a *applier) followCores(ctx context.Context, o Options) error {
	logged := ""
	tick := time.NewTicker(coresEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		found, err := o.Cores(a.starts.AnyCgroup())
		if said := fmt.Sprint(err); err != nil && said != logged {
			o.Log.Warnf("which CPUs pods can use is not known in full, %s count: %v", a.coresNow(), err)
			logged = said
		}
		if err != nil && a.coresKnown {
			continue
		}
		a.coresKnown = err == nil
		if found.Count > 0 && !found.Equal(a.coresNow()) {
			o.Log.Infof("cores that pods can use: %s", found)
			a.setCores(found)
		}
	}
}

// machineOf returns the hardware on which learned costs depend. The name of the CPU is empty if it is unknown.
func machineOf(procRoot string, cores int) costs.Machine {
	m := costs.Machine{Cores: cores}
	hosts := context.WithValue(context.Background(), common.EnvKey, common.EnvMap{common.HostProcEnvKey: procRoot})
	if all, err := cpu.InfoWithContext(hosts); err == nil && len(all) > 0 {
		m.CPU = all[0].ModelName
	}
	return m
}
