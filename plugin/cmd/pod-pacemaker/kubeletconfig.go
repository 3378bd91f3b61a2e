package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

const copyKubeletConfigLong = `Copy-kubelet-config copies kubelet's configuration to where the daemon reads it:
the first of the named files that exists. The DaemonSet does so before the daemon
starts, because a pod cannot mount a file that only some nodes have.

Where none of the files exists it writes a configuration that sets nothing, which
stands for kubelet's defaults.`

// kubeletDefaults is a configuration of kubelet that sets nothing.
const kubeletDefaults = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

func (p *program) copyKubeletConfigCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:     "copy-kubelet-config --to FILE CANDIDATE...",
		Short:   "Copy the first of some files that exists, for the DaemonSet",
		Long:    copyKubeletConfigLong,
		Example: "  pod-pacemaker copy-kubelet-config --to /kubelet/config.yaml /host/var/lib/kubelet/config.yaml",
		RunE: func(_ *cobra.Command, candidates []string) error {
			switch {
			case to == "":
				return &wrongUsage{"--to is missing: the file to write"}
			case len(candidates) == 0:
				return &wrongUsage{"CANDIDATE is missing"}
			}
			done, err := copyFirst(to, candidates)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(p.stdout, done)
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`file` to write")
	return cmd
}

// copyFirst writes what the first candidate that exists holds, and says what it did.
func copyFirst(to string, candidates []string) (done string, err error) {
	for _, candidate := range candidates {
		content, err := os.ReadFile(candidate)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("kubelet configuration: %w", err)
		}
		return "copied " + candidate, os.WriteFile(to, content, 0o600) //nolint:gosec // the administrator names it
	}
	return fmt.Sprintf("none of %v exists: taking kubelet's defaults", candidates), os.WriteFile(to, []byte(kubeletDefaults), 0o600)
}
