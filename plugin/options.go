package plugin

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/kubelet"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
)

const maxHold = time.Second

// Options are the settings of a daemon. An option may be empty if its comment says so.
type Options struct {
	// NodeName is the node's name in the API. It is required with InCluster or Kubeconfig.
	NodeName string
	// Kubeconfig is a file with credentials for the API server. If it is empty and InCluster is false, the daemon is
	// standalone: it uses no API server.
	Kubeconfig string
	// InCluster takes the credentials from the pod's service account.
	InCluster bool
	// ConfigFile holds a PacemakerConfig, StartPolicies, or both, in YAML. It is the only source of a standalone daemon.
	// Otherwise it is in force while no object of the kind selects the node. It may be empty.
	ConfigFile string
	// NRISocket is the runtime's NRI socket.
	NRISocket string
	// ContainerdState is the folder `state` of containerd's configuration, for the sizes of the pods and containers that
	// the runtime lists to a plugin. If it is empty, they are not known before the daemon registers.
	ContainerdState string
	// InPod reports whether the daemon runs in a container of containerd. ContainerdState must hold that container.
	InPod bool
	// RefuseLargeEnvironments makes the daemon refuse sandboxes and containers with more than 256 KiB of environment and
	// other settings.
	RefuseLargeEnvironments bool
	// NRIIndex orders the plugins of a runtime; two digits.
	NRIIndex string
	// RunDir is the folder of the gate's socket, the administrator's socket, the lock of the daemon that paces pods,
	// the notes of pods that left the waiting room, and the file that says which pods of startAfter were ready in this
	// boot. It must hold nothing else: once a daemon has the lock, only its user may open the folder.
	RunDir string
	// StateDir holds what outlives the daemon: the last good configuration and policies, and what starts took, which the
	// daemon learns with an API server, and whether the runtime ended when the daemon registered. If it is empty, the
	// daemon keeps nothing.
	StateDir string
	// GatePath is the absolute path of the hook's program on the host. If it is empty, there is no gate.
	GatePath string
	// Programs is the folder of the programs that the daemon installs on the host: pacemaker-gate, and for the waiting room
	// pacemaker-cni. A hook that is not in it must be at GatePath already. If Programs is empty, no hook is installed.
	Programs string
	// GateTimeout is the longest time of one wait in the gate: from 1s to 1h, and less than kubelet's
	// runtimeRequestTimeout.
	GateTimeout time.Duration
	// Gate is where the gate is used.
	Gate waiting.GateUse
	// RefuseAt is where pods are refused.
	RefuseAt waiting.RefuseAt
	// CNI is when the daemon installs the waiting room: a CNI configuration that names pacemaker-cni in CNIConfDir, and that
	// program in CNIBinDir. Both are absolute paths, and the same on the host. Both may be empty unless CNI is on: then
	// there is no room. A daemon with an Instance installs none, and refuses CNI on: the files have one name on a node.
	CNI                   cni.Use
	CNIConfDir, CNIBinDir string
	// Hold is the longest time of one wait inside a handler: from 0s, which means none, to 1s.
	Hold time.Duration
	// Instance is the name of this daemon where several run on a node. The daemon follows only PacemakerConfigs with this
	// spec.instance, and registers with NRI under a name that contains it. It may be empty.
	Instance string
	// Namespace is where the daemons keep their Leases, with InCluster or Kubeconfig.
	Namespace string
	// WhySocket is the path of a socket at which any user who can reach its folder may ask about a pod. If it is empty,
	// there is none.
	WhySocket string
	// HTTPAddress is where metrics and health are served. If it is empty, they are not served.
	HTTPAddress string
	// ProcRoot and CgroupRoot are the absolute paths of the host's /proc and /sys/fs/cgroup.
	ProcRoot, CgroupRoot string
	// DaemonSet is the one that runs this daemon, as NAMESPACE/NAME. If it was there when the daemon began and is removed
	// when the daemon ends, the daemon removes its files from the host. If it is empty, the files stay.
	DaemonSet string
	// StartupTaint is the key of a taint that the daemon removes from its node once pods are paced. If it is empty, the
	// daemon removes none.
	StartupTaint string
	// Version is the program's version, and Commit the commit of its sources, for status and metrics.
	Version, Commit string
	// Log is the daemon's log. Handlers log while the runtime holds its locks, so it must not block.
	Log *logrus.Logger
	// LogDropped returns the number of entries that Log has dropped, for the metrics. If it is nil, Log drops none.
	LogDropped func() uint64
}

var namespacedName = regexp.MustCompile(`^[a-z0-9][-a-z0-9]*/[a-z0-9][-.a-z0-9]*$`)

// shared matches folders that other programs of a host use.
var shared = regexp.MustCompile(`^/(var/)?[^/]*$|^/(etc|usr)/`)

var nriIndex = regexp.MustCompile(`^[0-9]{2}$`)

// Standalone reports whether the daemon works without an API server.
func (o Options) Standalone() bool { return o.Kubeconfig == "" && !o.InCluster }

// SocketPath returns the path of the gate's socket.
func (o Options) SocketPath() string { return filepath.Join(o.RunDir, "gate.sock") }

// AdminPath returns the path of the administrator's socket.
func (o Options) AdminPath() string { return filepath.Join(o.RunDir, "admin.sock") }

// wantsRoom reports whether the daemon may install the waiting room.
func (o Options) wantsRoom() bool {
	return o.CNI != cni.UseOff && o.CNIConfDir != "" && o.CNIBinDir != "" && o.NoRoom() == ""
}

// NoRoom returns why a daemon of this name has no waiting room, whatever CNI says. It is empty if it may have one.
func (o Options) NoRoom() string {
	if o.Instance == "" {
		return ""
	}
	return "a node has one waiting room, which only a daemon without --instance may install"
}

// Bundles returns the folder of the OCI bundles of the runtime's pods and containers, or "" if there is no ContainerdState.
func (o Options) Bundles() string {
	if o.ContainerdState == "" {
		return ""
	}
	return filepath.Join(o.ContainerdState, "io.containerd.runtime.v2.task", "k8s.io")
}

// lastGoodPath returns the file of the last good configuration, policiesPath the file of the last policies in force,
// costsPath the file of what starts took, and endsPath the file of the ends of the runtime. They return "" if the
// daemon keeps nothing.
func (o Options) lastGoodPath() string { return o.statePath("config") }
func (o Options) policiesPath() string { return o.statePath("policies") }
func (o Options) costsPath() string    { return o.statePath("costs") }
func (o Options) endsPath() string     { return o.statePath("registration") }

// statePath returns a file in the state folder. Each instance has its own.
func (o Options) statePath(name string) string {
	if o.StateDir == "" {
		return ""
	}
	return filepath.Join(o.StateDir, o.ofInstance(name, "-")+".json")
}

// files returns the files that a daemon leaves on the host, without the waiting room and its notes, in the order in which
// they are removed.
func (o Options) files() []string {
	all := []string{o.SocketPath(), o.AdminPath(), o.readyPath()}
	if o.StateDir != "" {
		all = append(all, o.lastGoodPath(), o.policiesPath(), o.costsPath(), o.endsPath())
	}
	if o.GatePath != "" {
		all = append(all, o.GatePath)
	}
	// Without the lock's file, another daemon no longer waits, and would put the others back while they are removed.
	return append(all, rundir.LockPath(o.RunDir))
}

// Validate returns all faults of the options, joined, or nil if they are valid.
func (o Options) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(!o.Standalone() && o.NodeName == "", "--node-name: must be set when an API server is used (in a DaemonSet: env NODE_NAME from spec.nodeName)")
	name := func(flag, value string, expected []string) {
		fault(value != "" && len(expected) > 0, "%s: %q: %s", flag, value, strings.Join(expected, "; "))
	}
	name("--node-name", o.NodeName, validation.IsDNS1123Subdomain(o.NodeName))
	name("--namespace", o.Namespace, validation.IsDNS1123Label(o.Namespace))
	name("--instance", o.Instance, validation.IsDNS1123Label(o.Instance))
	fault(o.HTTPAddress != "" && !IsAddress(o.HTTPAddress), "--http: %q: must be HOST:PORT with a port from 1 to 65535, like 127.0.0.1:9464, or empty for none", o.HTTPAddress)
	fault(!nriIndex.MatchString(o.NRIIndex), "--nri-index: %q: must be two digits, like \"05\"", o.NRIIndex)
	fault(o.WhySocket != "" && (!filepath.IsAbs(o.WhySocket) || len(o.WhySocket) > 100), "--why-socket: %q: must be an absolute path of at most 100 bytes, or empty for none", o.WhySocket)
	fault(!filepath.IsAbs(o.RunDir), "--run-dir: %q: must be an absolute path", o.RunDir)
	fault(shared.MatchString(filepath.Clean(o.RunDir)), "--run-dir: %q: must be a folder of its own, and neither directly in / or /var, nor in /etc or /usr: the daemon closes it to other users", o.RunDir)
	fault(len(o.SocketPath()) > 100, "--run-dir: %q: must be shorter, a unix socket's path has at most 107 bytes", o.RunDir)
	fault(o.StateDir != "" && !filepath.IsAbs(o.StateDir), "--state-dir: %q: must be an absolute path, or empty to keep nothing", o.StateDir)
	fault(!filepath.IsAbs(o.ProcRoot), "--proc-root: %q: must be an absolute path", o.ProcRoot)
	fault(!filepath.IsAbs(o.NRISocket), "--nri-socket: %q: must be an absolute path", o.NRISocket)
	fault(o.ContainerdState != "" && !filepath.IsAbs(o.ContainerdState), "--containerd-state: %q: must be an absolute path, or empty not to look there", o.ContainerdState)
	fault(o.GatePath != "" && !filepath.IsAbs(o.GatePath), "--gate-path: %q: must be an absolute path on the host, or empty for no gate", o.GatePath)
	fault(o.DaemonSet != "" && !namespacedName.MatchString(o.DaemonSet), "--daemonset: %q: must be NAMESPACE/NAME", o.DaemonSet)
	fault(o.DaemonSet != "" && o.Standalone(), "--daemonset: needs an API server to ask")
	fault(o.StartupTaint != "" && o.Standalone(), "--startup-taint: needs an API server that has the node")
	fault(o.GateTimeout < time.Second || o.GateTimeout > kubelet.MostGateTimeout, "--gate-timeout: %s: must be from 1s to 1h, and less than kubelet's runtimeRequestTimeout", o.GateTimeout)
	fault(!slices.Contains([]cni.Use{cni.UseAuto, cni.UseOn, cni.UseOff}, o.CNI), "--cni: %q: must be auto, on or off", o.CNI)
	fault(o.CNI == cni.UseOn && o.NoRoom() != "", "--cni: on with --instance %q: %s", o.Instance, o.NoRoom())
	ofRoom := func(dir string) bool { // in order
		return filepath.IsAbs(dir) || o.CNI == cni.UseOff || o.CNI == cni.UseAuto && dir == ""
	}
	fault(!ofRoom(o.CNIConfDir), "--cni-conf-dir: %q: must be an absolute path", o.CNIConfDir)
	fault(!ofRoom(o.CNIBinDir), "--cni-bin-dir: %q: must be an absolute path", o.CNIBinDir)
	fault(o.Hold < 0 || o.Hold > maxHold, "--hold: %s: must be from 0s to %s", o.Hold, maxHold)
	fault(!slices.Contains([]waiting.GateUse{waiting.GateAuto, waiting.GateAlways, waiting.GateNever}, o.Gate), "--gate: %q: must be auto, always or never", o.Gate)
	fault(!slices.Contains([]waiting.RefuseAt{waiting.RefuseAuto, waiting.RefuseSandbox, waiting.RefuseContainer}, o.RefuseAt), "--refuse-at: %q: must be auto, sandbox or container", o.RefuseAt)
	return errors.Join(faults...)
}

// IsAddress reports whether a text is HOST:PORT with a port from 1 to 65535. HOST may be empty.
func IsAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// pluginName is the name under which the daemon registers with NRI.
func (o Options) pluginName() string { return o.ofInstance("pod-pacemaker", "-") }

// nameOnNode is the name of the PacemakerNode of this daemon, and of the holder of its Leases.
func (o Options) nameOnNode() string { return o.ofInstance(o.NodeName, ".") }

// SummaryLease returns the name of the Lease by which the daemons of an instance take turns to sum up.
func (o Options) SummaryLease() string { return o.ofInstance("pod-pacemaker-summary", "-") }

// ofInstance returns a name, joined to the name of the instance if this is not the default instance.
func (o Options) ofInstance(name, separator string) string {
	if o.Instance == "" {
		return name
	}
	return name + separator + o.Instance
}
