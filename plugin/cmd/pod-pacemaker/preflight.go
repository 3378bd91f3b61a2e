package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/preflight"
)

const preflightLong = `Preflight looks whether this node has what the daemon needs, before it runs or
beside it, and changes nothing: the runtime's NRI socket, its version and known
faults, the hook and whether it can be executed where it lies, the run folder, CNI,
kubelet's time-out, cgroups, pressure, the API server with the CRDs and the daemon's
rights, the clock and the address for metrics. Give it the flags that 'run' has, or
will have.

Every finding is a line: ok; warning, where pods are paced, but worse than could be;
or fault, where they are not paced as configured. The line below says what to do.

Exit codes: 0 there is no fault; 1 there is one; 64 the flags or the configuration are
wrong.`

const preflightExample = `  # On a host, before anything is installed:
  sudo pod-pacemaker preflight

  # Everything that a daemon would do with these flags:
  pod-pacemaker preflight --config /etc/pod-pacemaker/config.yaml

  # In the cluster, by the chart:
  helm test pod-pacemaker --namespace pod-pacemaker --logs`

func (p *program) preflightCommand() *cobra.Command {
	var f runFlags
	var o output
	cmd := &cobra.Command{
		Use:     "preflight",
		Short:   "Look whether this node has what the daemon needs",
		Long:    preflightLong,
		Example: preflightExample,
		Args:    takes(),
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			kubeletConfig := f.kubeletConfig
			f.kubeletConfig = "" // one that cannot be read is a finding
			if err := f.resolve(cmd, p.env); err != nil {
				return err
			}
			return p.preflight(cmd.Context(), preflight.Options{
				Options: f.Options, KubeletConfig: kubeletConfig, CNIConfDir: f.CNIConfDir,
				GateTimeoutSet: cmd.Flags().Changed("gate-timeout"),
			}, o)
		}),
	}
	f.add(cmd)
	addOutput(cmd, &o)
	return cmd
}

// preflight writes what it found. A fault is a failure, for it may be mended.
func (p *program) preflight(ctx context.Context, options preflight.Options, o output) error {
	report, err := preflight.Run(ctx, options)
	if err != nil {
		return invalid(options.ConfigFile, err)
	}
	if o == outputJSON {
		err = p.writeJSON(report)
	} else {
		_, err = fmt.Fprint(p.stdout, preflightText(report))
	}
	if err != nil {
		return err
	}
	if n := report.Count(preflight.Fault); n > 0 {
		return errors.New(plural(n, "fault") + ": pods are not paced as configured")
	}
	return nil
}

func preflightText(report preflight.Report) string {
	var text strings.Builder
	fmt.Fprintf(&text, "pod-pacemaker %s, on %s:\n", report.Version, clean(report.Node))
	for _, f := range report.Findings {
		fmt.Fprintf(&text, "  %-8s %-8s %s\n", f.Level, f.Check, clean(f.Says))
		if f.Do != "" {
			fmt.Fprintf(&text, "  %-8s %-8s -> %s\n", "", "", clean(f.Do))
		}
	}
	return text.String()
}
