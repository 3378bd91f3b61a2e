package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

const checkLong = `Check validates a file with a PacemakerConfig, StartPolicies or both, by the rules of
the API server and the daemon, and explains what they mean on a node.

Each fault is a line on standard error with the field's path and the expected value.
The exit code is then 64. Wrong types are reported before wrong values, and only the
first invalid document of several is reported. FILE can be - for standard input.`

const checkExample = `  pod-pacemaker check config.yaml
  pod-pacemaker check config.yaml --cores 96
  kubectl get pacemakerconfig default -o yaml | pod-pacemaker check -`

func (p *program) checkCommand() *cobra.Command {
	cores := runtime.NumCPU()
	cmd := &cobra.Command{
		Use:     "check FILE",
		Short:   "Validate and explain a PacemakerConfig or StartPolicy file",
		Long:    checkLong,
		Example: checkExample,
		Args:    needs("FILE", 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if cores < 1 {
				return invalidUsage("--cores: %d: must be at least 1", cores)
			}
			return p.check(args[0], cores)
		},
	}
	cmd.Flags().IntVar(&cores, "cores", cores, "explain the limits for a node with this number of CPU `cores` (default: as many as this machine has)")
	cmd.Flags().Lookup("cores").DefValue = "0" // the same help on every machine
	return cmd
}

func (p *program) check(file string, cores int) (err error) {
	var found crd.Documents
	if file == "-" {
		file = "standard input"
		var data []byte
		if data, err = io.ReadAll(p.stdin); err == nil {
			found, err = crd.Parse(data)
		}
	} else {
		found, err = crd.Load(file)
	}
	if err != nil {
		return invalidIn(file, err)
	}
	if config := found.Config; config != nil {
		_, err = fmt.Fprintf(p.stdout, "%s: valid: PacemakerConfig %q, for %s, priority %d\n%s\n",
			file, config.Name, nodesText(config.Spec.NodeSelector), config.Spec.Priority, onNode(config.Spec, cores))
	}
	for _, policy := range found.Policies {
		_, fault := fmt.Fprintf(p.stdout, "%s: valid: StartPolicy %s\n", file, policyText(time.Now(), policy))
		err = errors.Join(err, fault)
	}
	return err
}

// nodesText describes the nodes that have these labels.
func nodesText(labels map[string]v1alpha1.LabelValue) string {
	if len(labels) == 0 {
		return "every node"
	}
	return "nodes with " + pairsText(labels, "=")
}

func onNode(spec v1alpha1.PacemakerConfigSpec, cores int) string {
	limits := admin.LimitsText(plugin.SettingsOf(spec, cores))
	switch {
	case spec.GetMode() == v1alpha1.ModeOff:
		return "Its mode is Off: no pod is held back."
	case limits == admin.NoLimits:
		return "It sets no limit: no pod is held back."
	}
	text := fmt.Sprintf("Starts on a node with %s: %s.", plural(cores, "core"), limits)
	if spec.GetMode() == v1alpha1.ModeShadow {
		text += "\nIts mode is Shadow: no pod is held back, but the daemon reports what Enforce would do."
	}
	return text
}
