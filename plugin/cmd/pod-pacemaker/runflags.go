package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/kubelet"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// cgroupRoot is where the host's cgroups are, also in the pod of the DaemonSet.
const cgroupRoot = "/sys/fs/cgroup"

// runFlags are the flags of `run`.
type runFlags struct {
	plugin.Options

	kubeletConfig string
	log           logFlags
}

// add declares the flags with their defaults. A usual node does not need those marked (advanced).
func (f *runFlags) add(cmd *cobra.Command) {
	f.Gate, f.RefuseAt, f.CNI = waiting.GateAuto, waiting.RefuseAuto, cni.UseAuto
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.ConfigFile, "config", "", "YAML `file` with a PacemakerConfig, StartPolicies or both: the only source when standalone, else the fallback while no PacemakerConfig object selects this node; their nodeSelector, instance and priority have no effect")
	fs.StringVar(&f.NodeName, "node-name", "", "this node's `name` in the API (env NODE_NAME; neither: the host's name, except in a pod)")
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "", "`file` with access to the API server (empty: the pod's service account; neither: standalone)")
	fs.StringVar(&f.NRISocket, "nri-socket", "/var/run/nri/nri.sock", "the runtime's NRI `socket`")
	fs.StringVar(&f.NRIIndex, "nri-index", "05", "(advanced) two `digits` that order the runtime's plugins")
	fs.StringVar(&f.ContainerdState, "containerd-state", "/run/containerd", "(advanced) `folder` of containerd's state: the daemon does not register while the pods in it are too large for containerd to list, which could end containerd (empty: it does not look)")
	fs.BoolVar(&f.RefuseLargeEnvironments, "refuse-large-environments", false, "refuse containers with more than 256 KiB of environment and other settings, which containerd may be unable to list")
	fs.StringVar(&f.Instance, "instance", "", "`name` of this daemon if several run on a node: it follows the PacemakerConfigs and StartPolicies with this spec.instance (empty: those without spec.instance)")
	fs.StringVar(&f.Namespace, "namespace", "", "(advanced) `namespace` of the Leases by which daemons take turns to write the status of StartPolicies, and claim slots of the scope Cluster; the same for all daemons (env POD_NAMESPACE; neither: pod-pacemaker)")
	fs.StringVar(&f.RunDir, "run-dir", defaultRunDir, "`folder` for the sockets gate.sock and admin.sock alone, with the same path on the host; with --instance NAME the default is the folder NAME in it")
	fs.StringVar(&f.StateDir, "state-dir", "/var/lib/pod-pacemaker", "(advanced) `folder` for the last good PacemakerConfigs and StartPolicies, which apply until the API server answers, for the costs of starts, and for a note that the runtime ended when the daemon registered (empty: nothing is kept)")
	fs.StringVar(&f.ProcRoot, "proc-root", "/proc", "(advanced) `folder` where the host's /proc is mounted, to see the processes of other pods")
	addChoice(cmd, &f.Gate, "gate", "", "(advanced) whether containers wait in the gate; auto: if the runtime has no known fault with it", waiting.GateAuto, waiting.GateAlways, waiting.GateNever)
	fs.StringVar(&f.GatePath, "gate-path", "/opt/pod-pacemaker/bin/"+waiting.HookName, "(advanced) the hook's absolute `path` on the host, to which the daemon copies it from its own folder (empty: no gate)")
	fs.DurationVar(&f.GateTimeout, "gate-timeout", 100*time.Second, "(advanced) how long a container may wait in the gate; must be less than kubelet's runtimeRequestTimeout")
	fs.StringVar(&f.kubeletConfig, "kubelet-config", "", "kubelet's configuration `file`; if --gate-timeout is not set, it becomes 0.8 of the runtimeRequestTimeout in this file, at most 1h")
	addChoice(cmd, &f.CNI, "cni", "", "whether to install the waiting room, in which pods wait before their sandbox exists: pacemaker-cni, and a CNI configuration that names it; auto: unless something on the node speaks against it; --cni alone: on", cni.UseAuto, cni.UseOn, cni.UseOff)
	fs.Lookup("cni").NoOptDefVal = string(cni.UseOn)
	fs.StringVar(&f.CNIConfDir, "cni-conf-dir", "/etc/cni/net.d", "(advanced) `folder` of the CNI configurations, under the same path on the host")
	fs.StringVar(&f.CNIBinDir, "cni-bin-dir", "/opt/cni/bin", "(advanced) `folder` of the CNI plugins, under the same path on the host")
	addChoice(cmd, &f.RefuseAt, "refuse-at", "", "(advanced) where pods that are far back in the queue are refused; auto: at the sandbox while that costs little CPU", waiting.RefuseAuto, waiting.RefuseSandbox, waiting.RefuseContainer)
	fs.DurationVar(&f.Hold, "hold", 200*time.Millisecond, "(advanced) how long one call of the runtime may be held for a pod that is next in the queue, at most 1s (0: never)")
	fs.StringVar(&f.WhySocket, "why-socket", "", "`file` of a socket at which every user who can reach its folder may ask about a pod, for 'pod-pacemaker metrics-proxy --why-socket' (empty: none)")
	fs.StringVar(&f.HTTPAddress, "http", "127.0.0.1:9464", "`address` of /metrics, /healthz, /readyz and the page (empty: none)")
	fs.StringVar(&f.DaemonSet, "daemonset", "", "(advanced) `NAMESPACE/NAME` of the DaemonSet that runs this daemon; once it is deleted or does not select the node, the daemon removes its files from the host (empty: they stay)")
	fs.StringVar(&f.StartupTaint, "startup-taint", "", "(advanced) `key` of a taint to remove from the node once pods are paced (empty: none)")
	f.log.add(cmd)
}

// resolve completes the options from the environment and files, and checks them.
func (f *runFlags) resolve(cmd *cobra.Command, env func(string) string) error {
	f.CgroupRoot, f.Version, f.Commit = cgroupRoot, version, commit
	f.InCluster = f.Kubeconfig == "" && env("KUBERNETES_SERVICE_HOST") != ""
	f.Namespace = cmp.Or(f.Namespace, env("POD_NAMESPACE"), "pod-pacemaker")
	// kubelet registers the host's name in lower case. In a pod, the host's name may be the pod's.
	f.NodeName = cmp.Or(f.NodeName, strings.ToLower(env("NODE_NAME")))
	if f.NodeName == "" && env("KUBERNETES_SERVICE_HOST") == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find this node's name: %w", err)
		}
		f.NodeName = strings.ToLower(host)
	}
	if f.Instance != "" && !cmd.Flags().Changed("run-dir") {
		f.RunDir = filepath.Join(f.RunDir, f.Instance) // daemons on one node have their own sockets
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's folder: %w", err)
	}
	f.Programs = filepath.Dir(self)
	if f.kubeletConfig != "" {
		timeout, err := kubelet.GateTimeoutOf(f.kubeletConfig)
		if unread := (*fs.PathError)(nil); errors.As(err, &unread) {
			return fmt.Errorf("--kubelet-config: %w", err) // a retry may help: the file may be written later
		}
		if err != nil {
			return invalidIn("--kubelet-config", err)
		}
		if !cmd.Flags().Changed("gate-timeout") {
			f.GateTimeout = timeout
		}
	}
	if err := f.Validate(); err != nil {
		return invalid(strings.Split(err.Error(), "\n"))
	}
	return nil
}
