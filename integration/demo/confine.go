package demo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ConfineCommand is the first argument with which this program executes another one on some CPUs
// only; see Confine.
const ConfineCommand = "on-cpus"

// confined returns the arguments that run args on only the herd's CPUs.
func confined(h Herd, args []string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return append([]string{self, ConfineCommand, h.cpuset()}, args...), nil
}

// Confine executes a program on a list of CPUs. args are the list ("0,1"), the program and its
// arguments. Confine returns only with an error.
func Confine(args []string) error {
	if len(args) < 2 {
		return errors.New(ConfineCommand + " is for the demo's own use; it takes a list of CPUs and a program")
	}
	var set unix.CPUSet
	for text := range strings.SplitSeq(args[0], ",") {
		cpu, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("list of CPUs %q: %w", args[0], err)
		}
		set.Set(cpu)
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	// The new program gets the CPUs of the thread that executes it.
	runtime.LockOSThread()
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("moving to CPUs %s: %w", args[0], err)
	}
	if err := unix.Exec(path, args[1:], os.Environ()); err != nil {
		return fmt.Errorf("becoming %s: %w", path, err)
	}
	return nil
}

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
