package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/kubelet"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// callTimeout is the longest time of a call of another program.
const callTimeout = 5 * time.Second

// nriFinding returns whether the NRI socket is there.
func nriFinding(socket string) Finding {
	const check, enable = "nri", "enable NRI in containerd, as deploy/install.md says: it is on by default in 2.x and off in 1.7"
	info, err := os.Stat(socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault(check, "there is no "+socket+": NRI is off, its socket is elsewhere, or containerd does not run", enable+"; or name its socket with --nri-socket")
	case err != nil:
		return fault(check, err.Error(), enable)
	case info.Mode().Type() != fs.ModeSocket:
		return fault(check, socket+" is not a socket", "name containerd's NRI socket with --nri-socket")
	}
	if err := unix.Access(socket, unix.W_OK); err != nil {
		return fault(check, fmt.Sprintf("%s: %v", socket, err), "run as root")
	}
	return ok(check, socket+" is there")
}

// runtimeOf returns the name and version of the container runtime: what the API server says, if it does, or else what a
// daemon that runs says. Both are empty if unknown.
func runtimeOf(known string, running admin.Runtime) (name, version string) {
	if name, version, found := strings.Cut(known, "://"); found {
		return name, version
	}
	return running.Name, running.Version
}

// timeoutFinding returns what is wrong with the runtime's time-out for plugins, which only a daemon that is connected knows.
func timeoutFinding(running admin.Runtime) []Finding {
	what, do, wrong := strings.Cut(running.TimeoutWarning, ": ")
	if !wrong {
		return nil
	}
	return []Finding{warning("timeouts", what, do)}
}

func runtimeFinding(name, version string) Finding {
	const check = "runtime"
	if name == "" {
		return warning(check, "its version is unknown: neither the API server nor a daemon told it", "name the cluster with --kubeconfig, or compare 'containerd --version' with deploy/platforms.md: containers wait in the gate on containerd 2.3.2 and later")
	}
	const upgrade = "upgrade containerd to 2.3.3 or later; until then "
	const atContainer = "pods are refused only at the container, and Tekton, Flyte and others give up a pod that shows this error: use the waiting room, as deploy/controllers.md says"
	switch gate, sandbox := waiting.RuntimeFaults(name, version); {
	case sandbox != "":
		return warning(check, strings.Trim(gate+"; "+sandbox, "; "), upgrade+atContainer)
	case gate != "":
		return warning(check, gate, upgrade+"pods outside the waiting room are refused, and start up to 15 s after their turn")
	}
	return ok(check, name+" "+version+" has no known fault")
}

// gateFinding executes the hook once. bar is why this runtime cannot use the gate; empty if it can.
func gateFinding(ctx context.Context, o Options, bar string) Finding {
	const check = "gate"
	const refused = "pods outside the waiting room are refused, and start up to 15 s after their turn"
	const without = "without the hook, " + refused
	switch {
	case o.Gate == waiting.GateNever:
		return warning(check, "not used: --gate never", refused)
	case o.GatePath == "":
		return warning(check, "not used: --gate-path is empty", refused)
	}
	install := "'install -D -m 0755 bin/" + filepath.Base(o.GatePath) + " " + o.GatePath + "' does"
	if _, err := os.Stat(o.GatePath); errors.Is(err, fs.ErrNotExist) {
		return warning(check, "there is no "+o.GatePath+" yet", "the DaemonSet's daemon copies it when it starts; on a host, "+install+"; "+without)
	}
	if says := waiting.HookFault(o.GatePath); says != "" {
		return fault(check, says, "the DaemonSet's daemon replaces the file when it starts; on a host, "+install+"; --gate-path (chart: paths.gate) chooses another folder; "+without)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, o.GatePath, "--version").CombinedOutput() //nolint:gosec // nobody but root can change it, as was just seen
	if err != nil {
		return fault(check, fmt.Sprintf("%s cannot be executed: %v %s", o.GatePath, err, out), "check that the file is for this architecture, and that SELinux or another module allows it; "+without)
	}
	if bar != "" && o.Gate != waiting.GateAlways {
		return ok(check, o.GatePath+" can be executed, but is not used with this runtime")
	}
	return ok(check, fmt.Sprintf("%s can be executed, and a container may wait there for up to %s", o.GatePath, o.GateTimeout))
}

func cniFinding(dir string) Finding {
	name, err := cni.First(dir)
	if err != nil {
		return warning("cni", dir+" has no CNI configuration", "install a network plugin, or name its folder with --cni-conf-dir; the daemon itself needs none")
	}
	return ok("cni", "configured by "+filepath.Join(dir, name))
}

// roomFinding returns whether the daemon would install the waiting room, and if none runs, what an earlier one has left of
// it.
func roomFinding(o plugin.Options, runs bool) Finding {
	const check, refused = "room", "pods without a place in the gate are refused and may show an error status"
	if why := o.NoRoom(); why != "" {
		return warning(check, "off: "+why, refused)
	}
	ours := filepath.Join(o.CNIConfDir, cni.FileName)
	if !runs && cni.InPlace(o.CNIConfDir) {
		if err := cni.Runnable(o.CNIBinDir); err != nil {
			return fault(check, fmt.Sprintf("no pod of this node starts: %s runs a program that is missing: %v", ours, err), "remove "+ours+", or start the daemon, which installs both")
		}
		return warning(check, ours+" is there, and no daemon answers at "+o.RunDir+": a pod starts up to 10 s late, until none has answered for a minute", "start the daemon, or remove "+ours+", and after a second "+filepath.Join(o.CNIBinDir, cni.ProgramName))
	}
	if o.CNI == cni.UseOff {
		return warning(check, "off: --cni=off", refused)
	}
	source, _, err := cni.Options{Use: o.CNI, ConfDir: o.CNIConfDir, BinDir: o.CNIBinDir}.Plan()
	if err != nil {
		return warning(check, fmt.Sprintf("not installed (--cni=%s): %v", o.CNI, err), refused)
	}
	return ok(check, fmt.Sprintf("nothing speaks against it (--cni=%s): the daemon makes %s from %s, with %s at the end", o.CNI, cni.FileName, source, cni.ProgramName))
}

// kubeletFinding compares how long a container may wait in the gate with how long kubelet waits for the runtime, by its
// file. It sets GateTimeout if the daemon takes that from the file.
func kubeletFinding(o *Options) Finding {
	const check = "kubelet"
	var most time.Duration
	if o.KubeletConfig != "" {
		var err error
		if most, err = kubelet.GateTimeoutOf(o.KubeletConfig); err != nil {
			return fault(check, err.Error(), "name kubelet's file with --kubelet-config (chart: kubeletConfig)")
		}
		if !o.GateTimeoutSet {
			o.GateTimeout = most
		}
	}
	waits := fmt.Sprintf("a container may wait %s in the gate", o.GateTimeout)
	// A flag or a drop-in of kubelet overrides its file, and is not seen from a pod.
	const perhaps = "if a flag or drop-in of kubelet sets runtimeRequestTimeout, set --gate-timeout (chart: gate.timeout) to 0.8 of it"
	switch over := float64(o.GateTimeout) >= float64(most)/kubelet.TimeoutShare; {
	case o.KubeletConfig == "":
		return warning(check, waits+", which must be less than kubelet's runtimeRequestTimeout, 2m by default", "name kubelet's file with --kubelet-config (chart: kubeletConfig); "+perhaps)
	case over:
		return warning(check, waits+", and kubelet gives up before that, according to "+o.KubeletConfig, "set --gate-timeout (chart: gate.timeout) to "+most.String()+"; "+perhaps)
	case !o.GateTimeoutSet:
		return ok(check, waits+", as "+o.KubeletConfig+" allows")
	}
	return ok(check, waits+", and kubelet waits longer, according to "+o.KubeletConfig)
}

// stateFinding reports whether containerd keeps its state elsewhere: the bundles that the daemon sees do not have its own.
func stateFinding(o Options) []Finding {
	dir := o.Bundles()
	if folders, err := os.ReadDir(dir); !o.OfThePod || err != nil || len(folders) > 0 {
		return nil // without a dir, there is an err
	}
	return []Finding{fault("containerd", dir+" has no container, not even the daemon's: the daemon does not see which containers are being stopped, or are too large for containerd to list",
		"set containerd.state of the chart, or --containerd-state, to `state` of containerd's configuration (k3s, RKE2: /run/k3s/containerd)")}
}

// cgroupFinding also reports whether the daemon can tell what starts read and write.
func cgroupFinding(root, proc string) Finding {
	const check = "cgroup"
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return warning(check, fmt.Sprintf("%s: %v", root, err), "without cgroups the daemon cannot tell whether a start makes progress, and lends no slots")
	}
	if fs.Type != unix.CGROUP2_SUPER_MAGIC {
		if err := processIO(root, proc); err != nil {
			return warning(check, "version 1, which counts no I/O of pods, and the daemon cannot read that of processes: "+err.Error()+": it learns nothing about starts, and lends no slots",
				"set processIO=true of the chart, or install deploy/systemd/process-io.conf for the unit")
		}
		return ok(check, "version 1; pod-pacemaker works with it, but newer versions of kubelet need version 2")
	}
	return ok(check, "version 2")
}

// processIO returns why the I/O of the processes of others cannot be read, or nil if it can, or if the kernel counts that of
// cgroups. Process 1 stands for all: only CAP_SYS_PTRACE lets the daemon read it, and those of most pods.
func processIO(cgroups, proc string) error {
	if _, err := (cgroup.Reader{Root: cgroups}).IOBytes("/"); err == nil {
		return nil
	}
	node, err := procfs.NewFS(proc)
	if err != nil {
		return err
	}
	first, err := node.Proc(1)
	if err != nil {
		return err
	}
	_, err = first.IO()
	return err
}

func pressureFinding(proc string) Finding {
	const check = "pressure"
	node, err := procfs.NewFS(proc)
	if err == nil {
		_, err = node.PSIStatsForResource("cpu")
	}
	if err != nil {
		return warning(check, "the kernel has no pressure information: "+err.Error(), "boot with psi=1; until then, pressure limits hold no pod, and adaptive uses CPU use alone")
	}
	return ok(check, "the kernel reports it (PSI)")
}
