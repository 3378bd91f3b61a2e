package preflight

import (
	"context"
	"fmt"
	"runtime"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// Options are those of the daemon, valid as [plugin.Options.Validate] says, and where
// else to look.
type Options struct {
	plugin.Options
	// KubeletConfig is kubelet's configuration file; empty: the one on kubelet's command line.
	KubeletConfig string
	// GateTimeoutSet: the administrator has set the time-out of the gate; else the daemon
	// takes it from KubeletConfig, where that is named.
	GateTimeoutSet bool
	// CNIConfDir is the folder of CNI's configuration; empty: it is not looked at.
	CNIConfDir string
	// OfThePod: the options are those of the daemon in whose pod this runs.
	OfThePod bool

	mountFlags func(dir string) (int64, error) // nil, but for tests: [waiting.MountFlags]
}

// Run looks at everything. It blocks for some seconds at most, or until ctx ends. The
// error is one of the configuration file that the options name; its text has every fault.
func Run(ctx context.Context, o Options) (Report, error) {
	config, err := configFinding(o.Options)
	if err != nil {
		return Report{}, err
	}
	if o.mountFlags == nil {
		o.mountFlags = waiting.MountFlags
	}
	report := Report{Version: o.Version, Node: o.NodeName}
	add := func(found ...Finding) { report.Findings = append(report.Findings, found...) }
	if o.OfThePod {
		add(ok("flags", "those of the daemon in this pod"))
	}
	add(config)
	var cluster api
	if !o.Standalone() {
		cluster = askAPI(ctx, o.Options)
	}
	status, daemon := askDaemon(ctx, o.AdminPath())
	name, version := runtimeOf(ctx, cluster, status, o.ProcRoot)
	bar, _ := waiting.RuntimeFaults(name, version)
	add(nriFinding(o.NRISocket), runtimeFinding(name, version), gateFinding(ctx, o, bar), daemon, runDirFinding(o.RunDir))
	if o.CNIConfDir != "" {
		add(cniFinding(o.CNIConfDir))
	}
	add(kubeletFinding(o), cgroupFinding(o.CgroupRoot), pressureFinding(o.ProcRoot))
	if !o.Standalone() {
		add(cluster.findings()...)
	}
	add(clockFinding(cluster), httpFinding(ctx, o.HTTPAddress, status != nil))
	return report, nil
}

func configFinding(o plugin.Options) (Finding, error) {
	const check = "config"
	if o.ConfigFile == "" {
		if o.Standalone() {
			return warning(check, "none is named: a daemon with these flags holds no pod", "name an API server by --kubeconfig, or a file with a PacemakerConfig by --config; "+
				"in the cluster, helm test does"), nil
		}
		return ok(check, "by the PacemakerConfig objects that select this node"), nil
	}
	found, err := crd.Load(o.ConfigFile)
	if err != nil {
		return Finding{}, err
	}
	text := o.ConfigFile + ":"
	if c := found.Config; c != nil {
		text += fmt.Sprintf(" %q: %s", c.Name, admin.LimitsText(plugin.SettingsOf(c.Spec, runtime.NumCPU())))
	}
	if n := len(found.Policies); n > 0 {
		text += fmt.Sprintf(" StartPolicies: %d", n)
	}
	if !o.Standalone() {
		text += "; where no PacemakerConfig object selects this node"
	}
	return ok(check, text), nil
}
