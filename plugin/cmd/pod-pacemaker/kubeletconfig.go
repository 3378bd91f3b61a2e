package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

const copyKubeletConfigLong = `Copy-kubelet-config copies kubelet's configuration to where the daemon reads it. It
takes the first of the named files that exists. If none exists, it writes an empty
configuration, which stands for kubelet's defaults. The DaemonSet runs it before the
daemon starts, because a pod cannot mount a file that only some nodes have.`

// kubeletDefaults is an empty configuration of kubelet.
const kubeletDefaults = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

func (p *program) copyKubeletConfigCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:     "copy-kubelet-config --to FILE CANDIDATE...",
		Short:   "Copy kubelet's configuration for the daemon; the DaemonSet runs it",
		Long:    copyKubeletConfigLong,
		Example: "  pod-pacemaker copy-kubelet-config --to /kubelet/config.yaml /host/var/lib/kubelet/config.yaml",
		Args:    needs("CANDIDATE", math.MaxInt),
		RunE: func(_ *cobra.Command, candidates []string) error {
			if to == "" {
				return invalidUsage("--to is missing: the file to write")
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

// copyFirst copies the first candidate that exists, or kubeletDefaults if none does. It returns a line about it.
func copyFirst(to string, candidates []string) (done string, err error) {
	for _, candidate := range candidates {
		content, err := os.ReadFile(candidate)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("kubelet configuration: %w", err)
		}
		return "copied " + candidate, os.WriteFile(to, content, 0o600) //nolint:gosec // the administrator names it
	}
	return fmt.Sprintf("none of %v exists: using kubelet's defaults", candidates), os.WriteFile(to, []byte(kubeletDefaults), 0o600)
}
