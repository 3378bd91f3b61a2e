package main

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/settings"
)

const checkLong = `Check validates files with PacemakerConfigs and StartPolicies, by the rules of the API
server and the daemon, and explains what each of them means on a node.

Each fault is a line on standard error with the file, the document, the field's path
and the expected value. The exit code is then 64. Rules about several fields are
checked once each of these is right. FILE can be - for standard input. A List is read
as its items. A file for "run --config" must have one PacemakerConfig at most.`

const checkExample = `  pod-pacemaker check config.yaml
  pod-pacemaker check policies/*.yaml --cores 96
  kubectl get pacemakerconfigs,startpolicies -o yaml | pod-pacemaker check -`

func (p *program) checkCommand() *cobra.Command {
	count := 0
	cmd := &cobra.Command{
		Use:     "check FILE...",
		Short:   "Validate and explain files with PacemakerConfigs and StartPolicies",
		Long:    checkLong,
		Example: checkExample,
		Args:    needs("FILE", math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			node, said := cores.Of(count), ""
			if !cmd.Flags().Changed("cores") {
				node, said = thisMachine()
			} else if count < 1 {
				return invalidUsage("--cores: %d: must be at least 1", count)
			}
			return p.check(args, node, said)
		},
	}
	cmd.Flags().IntVar(&count, "cores", 0, "explain the limits for a node whose pods can use this number of CPU `cores` (default: as many as pods could on this machine)")
	return cmd
}

// thisMachine returns the cores that pods could use on this machine, and where the number comes from.
func thisMachine() (node cores.Cores, said string) {
	node, err := plugin.Options{CgroupRoot: cgroupRoot}.Cores("")
	switch {
	case node.Count == 0:
		return cores.Of(runtime.NumCPU()), fmt.Sprintf(", as many as this process may use (%v)", err)
	case err != nil:
		return node, fmt.Sprintf(", as this machine has, by what can be read of it (%v)", err)
	case node.From != "":
		return node, fmt.Sprintf(" that pods can use, of %d, as this machine has: %s", node.Node, node.From)
	default:
		return node, ", as this machine has"
	}
}

func (p *program) check(files []string, node cores.Cores, said string) error {
	var faults invalid
	for _, file := range files {
		data, err := input(p.stdin, file)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		all := crd.ParseAll(data)
		if file == "-" {
			file = "standard input"
		}
		for i, o := range all {
			where := file
			if len(all) > 1 {
				where = fmt.Sprintf("%s: document %d", file, i+1)
				if o.Kind != "" {
					where += fmt.Sprintf(", %s %q", o.Kind, o.Name)
				}
			}
			wrong := faultsOf(o.Err)
			for _, fault := range wrong {
				faults = append(faults, where+": "+fault)
			}
			if len(wrong) > 0 {
				continue
			}
			if _, err := fmt.Fprintf(p.stdout, "%s: valid: %s\n", file, objectText(o, node, said)); err != nil {
				return err
			}
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// objectText explains a valid object.
func objectText(o crd.Object, node cores.Cores, said string) string {
	if o.Policy != nil {
		return "StartPolicy " + policyText(time.Now(), o.Policy)
	}
	spec := o.Config.Spec
	return fmt.Sprintf("PacemakerConfig %q, for %s, priority %d\n%s", o.Name, nodesText(spec.NodeSelector), spec.Priority, onNode(spec, node, said))
}

// nodesText describes the nodes that have these labels.
func nodesText(labels map[string]v1alpha1.LabelValue) string {
	if len(labels) == 0 {
		return "every node"
	}
	return "nodes with " + pairsText(labels, "=")
}

func onNode(spec v1alpha1.PacemakerConfigSpec, node cores.Cores, said string) string {
	inForce := settings.Of(spec, node)
	limits := admin.ConfigText(inForce, spec)
	switch {
	case spec.GetMode() == v1alpha1.ModeDisabled:
		return "Its mode is Disabled: no pod is held."
	case limits == admin.NoLimits:
		return "It sets no limit: no pod is held."
	}
	lines := []string{fmt.Sprintf("Starts on a node with %s%s: %s.", plural(node.Count, "core"), said, limits)}
	if spec.GetMode() == v1alpha1.ModeShadow {
		lines = append(lines, "Its mode is Shadow: no pod is held, but the daemon reports what Enforce would do.")
	}
	for _, warning := range []string{
		admin.PercentWarning(inForce), admin.MaxWaitWarning(spec.GetMaxWait(), spec.GetStartTimeout()), admin.StartAfterWarning(spec),
	} {
		if warning != "" {
			lines = append(lines, "Warning: "+warning+".")
		}
	}
	return strings.Join(lines, "\n")
}
