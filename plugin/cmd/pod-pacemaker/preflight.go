package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/preflight"
)

const preflightLong = `Preflight checks whether this node has what the daemon needs, and changes nothing:
the config that applies to it, the runtime's NRI socket, its version and known
faults, the hook and whether it can be executed, CNI, kubelet's time-out, cgroups,
pressure, and the API server with the CRDs and the daemon's rights. A daemon may run
meanwhile; 'status' says how it works. Use the same flags as for
'run'. In a daemon's pod, preflight takes the daemon's flags; flags on the command
line override them.

Each finding is a line. "ok" needs nothing. "warning": pods are paced, but worse than
they could be. "fault": pods are not paced as configured. A line with -> below says
what to do.

Exit codes: 0 no fault; 1 a fault; 64 wrong flags or configuration.`

const preflightExample = `  # On a host, before anything is installed:
  sudo pod-pacemaker preflight

  # With the flags of a daemon:
  pod-pacemaker preflight --config /etc/pod-pacemaker/config.yaml

  # In the cluster, with the chart; the log of its Job shows the findings:
  helm test pod-pacemaker --namespace pod-pacemaker
  kubectl -n pod-pacemaker logs job/pod-pacemaker-preflight

  # In the pod of one daemon, for its node:
  kubectl -n pod-pacemaker exec POD -- pod-pacemaker preflight`

func (p *program) preflightCommand() *cobra.Command {
	var f runFlags
	var o output
	cmd := &cobra.Command{
		Use:     "preflight",
		Short:   "Check whether this node has what the daemon needs",
		Long:    preflightLong,
		Example: preflightExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kubeletConfig := f.kubeletConfig
			f.kubeletConfig = "" // if it cannot be read, that is a finding
			if err := f.resolve(cmd, p.env); err != nil {
				return err
			}
			report, err := preflight.Run(cmd.Context(), preflight.Options{
				Options: f.Options, KubeletConfig: kubeletConfig,
				GateTimeoutSet: cmd.Flags().Changed("gate-timeout"), OfThePod: p.inPod,
			})
			if err != nil {
				return invalidIn(f.ConfigFile, err)
			}
			if err := p.write(o, report, preflightText(report)); err != nil {
				return err
			}
			if n := report.Count(preflight.Fault); n > 0 {
				return errors.New(plural(n, "fault") + ": pods are not paced as configured")
			}
			return nil
		},
	}
	f.add(cmd)
	addOutput(cmd, &o)
	return cmd
}

// completed puts the flags of the daemon in this container, if there is one, before the flags of preflight, which so
// override them. It never returns nil, which cobra would replace by os.Args. In a pod of the DaemonSet, process 1 is
// the daemon; on a host, and in any other container, it is another program.
func (p *program) completed(args []string) []string {
	line, err := os.ReadFile(p.firstProcess)
	words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	p.inPod = err == nil && len(words) > 1 && filepath.Base(words[0]) == "pod-pacemaker" && words[1] == "run"
	if !p.inPod || len(args) == 0 || args[0] != "preflight" {
		return append([]string{}, args...)
	}
	// A pod has the folder of CNI's configuration only if the daemon's flags name it.
	return slices.Concat([]string{args[0], "--cni-conf-dir="}, words[2:], args[1:])
}

func preflightText(report preflight.Report) string {
	var text strings.Builder
	fmt.Fprintf(&text, "pod-pacemaker %s, on %s:\n", report.Version, line(report.Node))
	for _, f := range report.Findings {
		fmt.Fprintf(&text, "  %-8s %-8s %s\n", f.Level, f.Check, line(f.Says))
		if f.Do != "" {
			fmt.Fprintf(&text, "  %-8s %-8s -> %s\n", "", "", line(f.Do))
		}
	}
	return text.String()
}
