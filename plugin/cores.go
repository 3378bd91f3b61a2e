package plugin

import (
	"context"
	"fmt"

	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/cpu"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// nodeCores returns the number of the node's logical CPUs. Unlike runtime.NumCPU it does not depend on the CPUs or the
// quota of this process.
func nodeCores(procRoot string) (int, error) {
	n, err := cpu.CountsWithContext(hostContext(procRoot), true)
	if err != nil {
		return 0, fmt.Errorf("count of the node's CPUs: %w", err)
	}
	return max(1, n), nil
}

// machineOf returns the hardware on which learned costs depend. The name of the CPU is empty if it is unknown.
func machineOf(procRoot string, cores int) costs.Machine {
	m := costs.Machine{Cores: cores}
	if all, err := cpu.InfoWithContext(hostContext(procRoot)); err == nil && len(all) > 0 {
		m.CPU = all[0].ModelName
	}
	return m
}

// hostContext returns a context that makes gopsutil read the host's /proc.
func hostContext(procRoot string) context.Context {
	return context.WithValue(context.Background(), common.EnvKey, common.EnvMap{common.HostProcEnvKey: procRoot})
}
