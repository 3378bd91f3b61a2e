package plugin

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// Limits of the options.
const (
	MaxHold = time.Second
	// MaxGateTimeout is the longest GateTimeout.
	MaxGateTimeout = time.Hour
	// KubeletTimeoutShare is the share of kubelet's runtimeRequestTimeout for which
	// [GateTimeoutOf] lets a container wait in the gate.
	KubeletTimeoutShare = 0.8
)

// Options are the settings of a daemon. Those that say so may be empty.
type Options struct {
	// NodeName is the node's name in the API. Needed with InCluster or
	// Kubeconfig.
	NodeName string
	// Kubeconfig is a file with access to the API server. Empty with InCluster
	// false: standalone, without an API server.
	Kubeconfig string
	// InCluster takes the access from the pod's service account.
	InCluster bool
	// ConfigFile has a PacemakerConfig, StartPolicies, or both, in YAML: the only source
	// when standalone, else the fallback while no object of the kind selects the node.
	// May be empty.
	ConfigFile string
	// PreRegistered is the connection to the runtime that has started this process; nil:
	// the daemon connects to NRISocket under NRIIndex.
	PreRegistered *nri.PreRegistered
	// NRISocket is the runtime's NRI socket.
	NRISocket string
	// NRIIndex orders the plugins of a runtime; two digits.
	NRIIndex string
	// RunDir holds the sockets of the gate and of the administrator.
	RunDir string
	// StateDir holds what outlives the daemon: the last good configuration, and what starts took, which
	// is learned with an API server. Empty: nothing does.
	StateDir string
	// GatePath is the hook binary's absolute path on the host. Empty: no gate.
	GatePath string
	// GateTimeout bounds one wait in the gate: from 1s to MaxGateTimeout, and below
	// kubelet's runtimeRequestTimeout.
	GateTimeout time.Duration
	// Gate says where the gate is used.
	Gate waiting.GateMode
	// RefuseAt says where pods are refused.
	RefuseAt waiting.RefuseAt
	// CNI has the daemon install the waiting room: a CNI configuration that names
	// pacemaker-cni, in CNIConfDir, and that program, in CNIBinDir. Both are absolute paths,
	// and the same on the host.
	CNI                   bool
	CNIConfDir, CNIBinDir string
	// CNIProgram is the file pacemaker-cni that is copied to CNIBinDir.
	CNIProgram string
	// Hold bounds one wait inside a handler, at most MaxHold. Zero: none.
	Hold time.Duration
	// Instance is this daemon's name where several run on a node: it follows the
	// PacemakerConfigs with this spec.instance and no others, and its name with NRI
	// has it. May be empty.
	Instance string
	// Namespace is where the Lease is by which the daemons of the cluster take turns to
	// write the status of the StartPolicies. Needed with InCluster or Kubeconfig.
	Namespace string
	// HTTPAddress is where metrics and health are served. Empty: nowhere.
	HTTPAddress string
	// ProcRoot and CgroupRoot are where the host's /proc and /sys/fs/cgroup are;
	// absolute paths.
	ProcRoot, CgroupRoot string
	// DaemonSet is the one that runs this daemon, as NAMESPACE/NAME. When the
	// daemon ends because that was removed, it takes its files off the host. Empty:
	// they stay.
	DaemonSet string
	// StartupTaint is the key of a taint that the daemon takes off its node once pods
	// are paced. Empty: it touches no node.
	StartupTaint string
	// Version is the program's version, for status.
	Version string
	// Log is the daemon's log. Handlers log while the runtime holds its
	// locks: it must not block.
	Log *logrus.Logger
	// LogDropped counts the entries that Log has dropped, for the metrics. nil: it
	// drops none.
	LogDropped func() uint64
}

var namespacedName = regexp.MustCompile(`^[a-z0-9][-a-z0-9]*/[a-z0-9][-.a-z0-9]*$`)

var nriIndex = regexp.MustCompile(`^[0-9]{2}$`)

// Standalone reports whether the daemon works without an API server.
func (o Options) Standalone() bool { return o.Kubeconfig == "" && !o.InCluster }

// SocketPath returns the path of the gate's socket.
func (o Options) SocketPath() string { return filepath.Join(o.RunDir, "gate.sock") }

// RoomTimeout returns how long a pod may wait in the waiting room: kubelet gives a sandbox
// twice the time that it gives a container.
func (o Options) RoomTimeout() time.Duration { return 2 * o.GateTimeout }

// AdminPath returns the path of the administrator's socket.
func (o Options) AdminPath() string { return filepath.Join(o.RunDir, "admin.sock") }

// lastGoodPath returns the path of the last good configuration, policiesPath of the last policies in force,
// costsPath of what was learned of starts. They are empty where nothing is kept.
func (o Options) lastGoodPath() string { return o.statePath("config") }
func (o Options) policiesPath() string { return o.statePath("policies") }
func (o Options) costsPath() string    { return o.statePath("costs") }

// statePath returns the path of a file in the state folder, which each instance has for itself.
func (o Options) statePath(name string) string {
	if o.StateDir == "" {
		return ""
	}
	if o.Instance != "" {
		name += "-" + o.Instance
	}
	return filepath.Join(o.StateDir, name+".json")
}

// Validate returns every fault of the options, joined; nil: none.
func (o Options) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(!o.Standalone() && o.NodeName == "", "--node-name: must be set when an API server is used (in a DaemonSet: env NODE_NAME from spec.nodeName)")
	fault(!nriIndex.MatchString(o.NRIIndex), "--nri-index: %q: must be two digits, like \"05\"", o.NRIIndex)
	fault(!filepath.IsAbs(o.RunDir), "--run-dir: %q: must be an absolute path", o.RunDir)
	fault(len(o.SocketPath()) > 100, "--run-dir: %q: must be shorter, a unix socket's path has at most 107 bytes", o.RunDir)
	fault(o.StateDir != "" && !filepath.IsAbs(o.StateDir), "--state-dir: %q: must be an absolute path, or empty to keep nothing", o.StateDir)
	fault(!filepath.IsAbs(o.ProcRoot), "--proc-root: %q: must be an absolute path", o.ProcRoot)
	fault(o.GatePath != "" && !filepath.IsAbs(o.GatePath), "--gate-path: %q: must be an absolute path on the host, or empty for no gate", o.GatePath)
	fault(o.DaemonSet != "" && !namespacedName.MatchString(o.DaemonSet), "--daemonset: %q: must be NAMESPACE/NAME", o.DaemonSet)
	fault(o.DaemonSet != "" && o.Standalone(), "--daemonset: needs an API server to ask")
	fault(o.StartupTaint != "" && o.Standalone(), "--startup-taint: needs an API server that has the node")
	fault(o.GateTimeout < time.Second || o.GateTimeout > MaxGateTimeout, "--gate-timeout: %s: must be from 1s to 1h", o.GateTimeout)
	fault(o.CNI && !filepath.IsAbs(o.CNIConfDir), "--cni-conf-dir: %q: must be an absolute path", o.CNIConfDir)
	fault(o.CNI && !filepath.IsAbs(o.CNIBinDir), "--cni-bin-dir: %q: must be an absolute path", o.CNIBinDir)
	fault(o.Hold < 0 || o.Hold > MaxHold, "--hold: %s: must be from 0s to %s", o.Hold, MaxHold)
	fault(!slices.Contains([]waiting.GateMode{waiting.GateAuto, waiting.GateAlways, waiting.GateNever}, o.Gate), "--gate: %q: must be auto, always or never", o.Gate)
	fault(!slices.Contains([]waiting.RefuseAt{waiting.RefuseAuto, waiting.RefuseSandbox, waiting.RefuseContainer}, o.RefuseAt), "--refuse-at: %q: must be auto, sandbox or container", o.RefuseAt)
	return errors.Join(faults...)
}

// pluginName is the name under which the daemon registers with NRI.
func (o Options) pluginName() string {
	if o.Instance == "" {
		return "pod-pacemaker"
	}
	return "pod-pacemaker-" + o.Instance
}
