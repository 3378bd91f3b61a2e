package lab

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab/keeper"
)

// ErrHost is wrapped by every error about something that this machine lacks.
var ErrHost = errors.New("this machine cannot run the lab")

// needed are the cgroup controllers without which runc or the kubelet fails.
var needed = []string{"cpu", "cpuset", "memory", "pids"}

// Preflight returns an error if this machine cannot run the lab: one sentence that names the
// remedy.
func Preflight() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it needs root to make containers; run it with sudo", ErrHost)
	}
	admin, err := hasCapability(unix.CAP_SYS_ADMIN)
	if err != nil {
		return err
	}
	if !admin {
		return fmt.Errorf("%w: root lacks CAP_SYS_ADMIN; in a container, run that one with --privileged", ErrHost)
	}
	if _, err := os.Stat("/proc/self/ns/net"); err != nil {
		return fmt.Errorf("%w: the kernel has no network namespaces; boot one with CONFIG_NET_NS", ErrHost)
	}
	controllers, err := keeper.Controllers()
	if err != nil {
		return err
	}
	var missing []string
	for _, c := range needed {
		if !slices.Contains(controllers, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: no cgroup controller %s is mounted below /sys/fs/cgroup; mount cgroup v2 there, "+
			"or in a container, run that one with --privileged --cgroupns=host", ErrHost, strings.Join(missing, ", "))
	}
	return nil
}
