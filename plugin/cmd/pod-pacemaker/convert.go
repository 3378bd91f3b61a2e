package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
)

const convertLong = `Convert translates objects of other projects, and writes the new objects to standard
output: the PacemakerConfigs of PodPacemaker, and the Throttles and ClusterThrottles of
kube-throttler, which become StartPolicies. Standard error says what differs and what
was left out: read it before you apply the result.

FILE can be - for standard input. A List is read as its items. If an object cannot be
translated, the others are written, and the exit code is 64.`

const convertExample = `  kubectl get pacemakerconfigs.woehrl.net -o yaml | pod-pacemaker convert - >configs.yaml
  kubectl get clusterthrottles,throttles -A -o yaml | pod-pacemaker convert - >policies.yaml`

func (p *program) convertCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "convert FILE",
		Short:   "Translate configurations of PodPacemaker and kube-throttler",
		Long:    convertLong,
		Example: convertExample,
		Args:    needs("FILE", 1),
		RunE:    func(_ *cobra.Command, args []string) error { return convert(p, args[0]) },
	}
}

// convert translates the objects of a file, or of standard input for "-".
func convert(p *program, file string) error {
	data, err := input(p.stdin, file)
	if err != nil {
		return invalid{err.Error()}
	}
	all := crd.Convert(data)
	if len(all) == 0 {
		return invalidUsage("%s: it has no object", file)
	}
	var faults invalid
	for i, c := range all {
		where := fmt.Sprintf("document %d, %s %q: ", i+1, c.Kind, c.Name)
		if c.Err != nil {
			for _, fault := range faultsOf(c.Err) {
				faults = append(faults, where+fault)
			}
			continue
		}
		for _, note := range c.Notes {
			fmt.Fprintf(p.stderr, "pod-pacemaker: %s\n", line(where+note))
		}
		text, err := yaml.Marshal(c.Content)
		if err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		if _, err := fmt.Fprintf(p.stdout, "---\n%s", text); err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// input returns the content of a file, or of standard input for "-".
func input(stdin io.Reader, file string) (data []byte, err error) {
	if file == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return data, nil
}
