package demo

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// usableCPUs returns the first n CPUs that this process may use, or fewer if there are no more.
func usableCPUs(n int) ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("asking for the CPUs of this machine: %w", err)
	}
	var all []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	return slices.Clip(all[:min(n, len(all))]), nil
}
