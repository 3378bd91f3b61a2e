package plugin

import (
	"context"
	"fmt"

	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/cpu"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// nodeCores returns the number of the node's logical CPUs. Unlike the Go runtime's
// figure it does not depend on the CPUs or the quota that this process is given.
func nodeCores(o Options) (int, error) {
	n, err := cpu.CountsWithContext(o.hostContext(), true)
	if err != nil {
		return 0, fmt.Errorf("count of the node's CPUs: %w", err)
	}
	return max(1, n), nil
}

// machineOf returns what the figures that starts took depend on. A CPU that does not tell its model is one
// without a name.
func machineOf(o Options, cores int) costs.Machine {
	m := costs.Machine{Cores: cores}
	if all, err := cpu.InfoWithContext(o.hostContext()); err == nil && len(all) > 0 {
		m.CPU = all[0].ModelName
	}
	return m
}

// hostContext tells gopsutil where the host's /proc is.
func (o Options) hostContext() context.Context {
	return context.WithValue(context.Background(), common.EnvKey, common.EnvMap{common.HostProcEnvKey: o.ProcRoot})
}
