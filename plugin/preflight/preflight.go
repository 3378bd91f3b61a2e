package preflight

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/settings"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// Options are the options of the daemon, which must pass [plugin.Options.Validate], and the options of the checks.
// CNI's configuration is not checked if CNIConfDir is empty.
type Options struct {
	plugin.Options
	// KubeletConfig is kubelet's configuration file; empty if it is not known.
	KubeletConfig string
	// GateTimeoutSet reports whether the administrator set GateTimeout. If not, the daemon takes it from KubeletConfig,
	// if that is set.
	GateTimeoutSet bool
	// OfThePod reports whether the daemon in this pod has these options.
	OfThePod bool
}

// Run makes all checks. It blocks for some seconds, or until ctx ends. It returns an error only if the configuration file
// of the options cannot be read or is invalid; the error has every fault.
func Run(ctx context.Context, o Options) (Report, error) {
	var file crd.Documents
	if o.ConfigFile != "" {
		var err error
		if file, err = crd.Load(o.ConfigFile); err != nil {
			return Report{}, err
		}
	}
	report := Report{Version: o.Version, Node: o.NodeName}
	add := func(found ...Finding) { report.Findings = append(report.Findings, found...) }
	if o.OfThePod {
		add(ok("flags", "those of the daemon in this pod"))
	}
	var api inAPI
	if !o.Standalone() {
		api = askAPI(ctx, o.Options)
	}
	pods, err := o.Cores("")
	add(coresFinding(pods, err), configFinding(o.Options, pods, file, api))
	if says := file.Ignored(o.Instance); says != "" {
		add(warning("file", o.ConfigFile+": "+says, "remove these fields; to choose nodes, create objects in the API server"))
	}
	running, err := admin.NewClient(o.AdminPath()).Status(ctx)
	runs := err == nil
	name, version := runtimeOf(api.runtime, running.Runtime)
	var bar string
	if name != "" { // the daemon will know it
		bar, _ = waiting.RuntimeFaults(name, version)
	}
	kubelet := kubeletFinding(&o)
	add(stateFinding(o)...)
	add(nriFinding(o.NRISocket), runtimeFinding(name, version), gateFinding(ctx, o, bar))
	add(timeoutFinding(running.Runtime)...)
	if o.CNIConfDir != "" {
		add(cniFinding(o.CNIConfDir), roomFinding(o.Options, runs))
	}
	add(kubelet, cgroupFinding(o.CgroupRoot, o.ProcRoot), pressureFinding(o.ProcRoot))
	add(api.findings...)
	return report, nil
}

// configFinding returns which configuration the daemon puts in force: the one from the API server, or else the one from
// the file.
func configFinding(o plugin.Options, pods cores.Cores, file crd.Documents, api inAPI) Finding {
	const check = "config"
	configText := func(c *v1alpha1.PacemakerConfig) string { return configText(c, pods) }
	const fallback = "while no PacemakerConfig object selects this node"
	text := o.ConfigFile + ":"
	if c := file.Config; c != nil {
		text += " " + configText(c)
	}
	if n := len(file.Policies); n > 0 {
		text += fmt.Sprintf(" StartPolicies: %d", n)
	}
	inForce := cmp.Or(api.config, file.Config)
	if inForce != nil {
		spec := inForce.Spec
		for _, w := range []struct{ says, do string }{
			{admin.PercentWarning(settings.Of(spec, pods)), "raise that limit"},
			{admin.MaxWaitWarning(spec.GetMaxWait(), spec.GetStartTimeout()), "set maxWait to 5m or less, or longer than the herd and the deadlines of rollouts above it"},
			{admin.StartAfterWarning(spec), "exempt them, by namespaces or daemonSets in exemptions, or by a critical priority class"},
		} {
			if w.says != "" {
				return warning(check, configText(inForce)+": "+w.says, w.do)
			}
		}
	}
	switch {
	case api.config != nil && o.ConfigFile != "":
		return ok(check, configText(api.config)+"; "+o.ConfigFile+" applies "+fallback)
	case api.config != nil:
		return ok(check, configText(api.config))
	case o.Standalone() && o.ConfigFile == "":
		return warning(check, "no configuration: a daemon with these flags holds no pod", "use --kubeconfig, or --config with a PacemakerConfig; in the cluster, use helm test")
	case o.Standalone():
		return ok(check, text)
	case api.configKnown && file.Config == nil:
		return warning(check, "no PacemakerConfig selects this node: only StartPolicies hold its pods", "apply one, like deploy/samples/every-node.yaml, or compare the nodeSelector and instance of yours with the node's labels and --instance")
	case o.ConfigFile == "":
		return ok(check, "the PacemakerConfig objects that select this node")
	}
	return ok(check, text+"; "+fallback)
}

// coresFinding says how many CPUs pods can use, and why no more.
func coresFinding(pods cores.Cores, err error) Finding {
	const check = "cores"
	switch {
	case pods.Count == 0:
		return fault(check, err.Error(), "mount the host's /sys where this program runs")
	case err != nil:
		return warning(check, fmt.Sprintf("pods can use %s, by what can be read: %v", pods, err), "see whether the file can be read, and what it has")
	default:
		return ok(check, "pods can use "+pods.String())
	}
}

// configText describes a config on one line, as 'pod-pacemaker check' does on several.
func configText(c *v1alpha1.PacemakerConfig, pods cores.Cores) string {
	text := fmt.Sprintf("%q", c.Name)
	switch mode := c.Spec.GetMode(); mode {
	case v1alpha1.ModeEnforce:
	case v1alpha1.ModeDisabled:
		return text + ", in the mode Disabled, which holds no pod"
	default:
		text += fmt.Sprintf(", in the mode %s, which holds no pod", mode)
	}
	return text + ": " + admin.ConfigText(settings.Of(c.Spec, pods), c.Spec)
}
