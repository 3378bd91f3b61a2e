package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/preflight"
)

const preflightLong = `Preflight looks whether this node has what the daemon needs, before it runs or
beside it, and changes nothing: the runtime's NRI socket, its version and known
faults, the hook and whether it can be executed where it lies, the run folder, CNI,
kubelet's time-out, cgroups, pressure, the API server with the CRDs and the daemon's
rights, the clock and the address for metrics. Give it the flags that 'run' has, or
will have. In the pod of a daemon it takes that daemon's flags; those that you give
win.

Every finding is a line: ok; warning, where pods are paced, but worse than could be;
or fault, where they are not paced as configured. The line below says what to do.

Exit codes: 0 there is no fault; 1 there is one; 64 the flags or the configuration are
wrong.`

const preflightExample = `  # On a host, before anything is installed:
  sudo pod-pacemaker preflight

  # Everything that a daemon would do with these flags:
  pod-pacemaker preflight --config /etc/pod-pacemaker/config.yaml

  # In the cluster, by the chart:
  helm test pod-pacemaker --namespace pod-pacemaker --logs

  # On the node of one daemon, in its pod:
  kubectl -n pod-pacemaker exec POD -- pod-pacemaker preflight`

func (p *program) preflightCommand() *cobra.Command {
	var f runFlags
	var o output
	cmd := &cobra.Command{
		Use:     "preflight",
		Short:   "Look whether this node has what the daemon needs",
		Long:    preflightLong,
		Example: preflightExample,
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			kubeletConfig := f.kubeletConfig
			f.kubeletConfig = "" // one that cannot be read is a finding
			if err := f.resolve(cmd, p.env); err != nil {
				return err
			}
			_, inPod := p.firstProcess.daemonsFlags()
			return p.preflight(cmd.Context(), preflight.Options{
				Options: f.Options, KubeletConfig: kubeletConfig, CNIConfDir: f.CNIConfDir,
				GateTimeoutSet: cmd.Flags().Changed("gate-timeout"), OfThePod: inPod,
			}, o)
		},
	}
	f.add(cmd)
	addOutput(cmd, &o)
	return cmd
}

// firstProcess is the file with the command line of the first process of this container.
type firstProcess string

// daemonsFlags returns the flags of the daemon that is the first process of this container, as in a pod of the
// DaemonSet. On a host, and in any other container, the first process is another program.
func (p firstProcess) daemonsFlags() (flags []string, found bool) {
	line, err := os.ReadFile(string(p))
	words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	if err != nil || len(words) < 2 || filepath.Base(words[0]) != "pod-pacemaker" || words[1] != "run" {
		return nil, false
	}
	return words[2:], true
}

// completed puts the daemon's flags, where there is one in this container, before those of preflight: of a flag that is
// given twice, the last counts. It returns a new list, for cobra takes nil for the arguments of the process.
func (p firstProcess) completed(args []string) []string {
	theirs, found := p.daemonsFlags()
	if !found || len(args) == 0 || args[0] != "preflight" {
		return append([]string{}, args...)
	}
	// The pod sees the folder of CNI's configuration only where the daemon's flags name it.
	return slices.Concat([]string{args[0], "--cni-conf-dir="}, theirs, args[1:])
}

// preflight writes what it found. A fault is a failure, for it may be mended.
func (p *program) preflight(ctx context.Context, options preflight.Options, o output) error {
	report, err := preflight.Run(ctx, options)
	if err != nil {
		return invalidIn(options.ConfigFile, err)
	}
	if o == outputJSON {
		err = writeJSON(p.stdout, report)
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
