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

// Options are the options of the daemon, which must pass [plugin.Options.Validate], and those of the checks. CNI's
// configuration is not checked if CNIConfDir is empty.
type Options struct {
	plugin.Options
	// KubeletConfig is kubelet's configuration file; if empty, the file on kubelet's command line.
	KubeletConfig string
	// GateTimeoutSet reports whether the administrator set GateTimeout. If not, the daemon takes it from KubeletConfig,
	// if that is set.
	GateTimeoutSet bool
	// OfThePod reports whether the options are those of the daemon in this pod.
	OfThePod bool
}

// Run makes all checks. It blocks for some seconds, or until ctx ends. It returns an error only if the configuration file
// of the options cannot be read or is invalid; the error has every fault.
func Run(ctx context.Context, o Options) (Report, error) {
	config, err := configFinding(o.Options)
	if err != nil {
		return Report{}, err
	}
	report := Report{Version: o.Version, Node: o.NodeName}
	add := func(found ...Finding) { report.Findings = append(report.Findings, found...) }
	if o.OfThePod {
		add(ok("flags", "those of the daemon in this pod"))
	}
	add(config)
	var cluster []Finding
	var known string
	var clock clock
	if !o.Standalone() {
		cluster, known = askAPI(ctx, o.Options, &clock)
	}
	name, version, asked := runtimeOf(ctx, known, o.Options)
	bar, _ := waiting.RuntimeFaults(name, version)
	kubelet := kubeletFinding(&o)
	add(nriFinding(o.NRISocket, containerdText(o.ProcRoot)), runtimeFinding(name, version, asked), gateFinding(ctx, o, bar))
	if o.CNIConfDir != "" {
		add(cniFinding(o.CNIConfDir))
	}
	add(kubelet, cgroupFinding(o.CgroupRoot), pressureFinding(o.ProcRoot))
	add(cluster...)
	add(clock.finding())
	return report, nil
}

func configFinding(o plugin.Options) (Finding, error) {
	const check = "config"
	if o.ConfigFile == "" {
		if o.Standalone() {
			return warning(check, "no configuration: a daemon with these flags holds no pod", "use --kubeconfig, or --config with a PacemakerConfig; in the cluster, use helm test"), nil
		}
		return ok(check, "the PacemakerConfig objects that select this node"), nil
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
		text += "; while no PacemakerConfig object selects this node"
	}
	return ok(check, text), nil
}
