package waiting

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/prometheus/procfs"
)

// runcShim is the shim that runs containers as processes of the node. It is the only shim that is known to
// serve other requests while it makes a container. A shim that runs a virtual machine holds a lock meanwhile.
const runcShim = "containerd-shim-runc-v2"

// bars returns why no hook may wait in a sandbox that is being made with this runtime, or "" if one may. It reads files
// of /proc.
func (r *runtime) bars(sandbox *api.PodSandbox, procRoot string) string {
	if r.barsGate != "" {
		return r.barsGate
	}
	return shimFault(sandbox, shimOf(procRoot, sandbox))
}

// youngerThanRuntime reports whether the connected runtime made the sandbox, and with it the shim. A sandbox that is
// older than the runtime's socket may have the shim of an earlier version. If the clock was set since, the result may
// be wrong. It reads files of the host.
func (s *shared) youngerThanRuntime(sandbox *api.PodSandbox) bool {
	socket, err := os.Stat(s.o.NRISocket)
	if err != nil {
		return false
	}
	fs, err := procfs.NewFS(s.o.ProcRoot)
	if err != nil {
		return false
	}
	proc, err := fs.Proc(int(sandbox.GetPid()))
	if err != nil {
		return false
	}
	stat, err := proc.Stat()
	if err != nil {
		return false
	}
	began, err := stat.StartTime() // of the sandbox's first process, rounded down by up to a second
	return err == nil && time.UnixMicro(int64(began*1e6)).After(socket.ModTime())
}

// shimFault returns why a pod's shim is not known to support waiting hooks, or "" if it is. If the name of
// the shim is not known (empty), only the default runtime handler is.
func shimFault(pod *api.PodSandbox, shim string) string {
	switch handler := pod.GetRuntimeHandler(); {
	case shim != "" && shim != runcShim:
		return fmt.Sprintf("the pod's shim %s is not known to support waiting hooks", shim)
	case shim == "" && handler != "" && handler != "runc":
		return fmt.Sprintf("the pod's runtime handler %q is not known to support waiting hooks", handler)
	}
	return ""
}

// shimOf returns the name of a sandbox's shim, or "" if it cannot be found. The shim is the first process of
// the sandbox or its parent, and has the ID of the sandbox among its arguments.
func shimOf(procRoot string, pod *api.PodSandbox) string {
	fs, err := procfs.NewFS(procRoot)
	if err != nil || pod.GetPid() == 0 {
		return ""
	}
	pid := int(pod.GetPid())
	for range 2 {
		proc, err := fs.Proc(pid)
		if err != nil {
			return ""
		}
		if args, err := proc.CmdLine(); err == nil && len(args) > 0 && slices.Contains(args, pod.GetId()) {
			return filepath.Base(args[0])
		}
		stat, err := proc.Stat()
		if err != nil {
			return ""
		}
		pid = stat.PPID
	}
	return ""
}
