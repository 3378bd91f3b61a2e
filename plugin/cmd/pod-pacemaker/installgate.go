package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
)

// gateName is the file name of the hook.
const gateName = "pacemaker-gate"

const installGateLong = `Install-gate copies the hook pacemaker-gate to a folder of the host, where runc
finds it. The DaemonSet runs it before the daemon starts.

The file is owned by root and has mode 0755. It replaces an older file in one step:
a hook that starts meanwhile is the old one or the new one. A file that is the same
already stays as it is.`

func (p *program) installGateCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:     "install-gate --to DIR",
		Short:   "Copy the hook pacemaker-gate to the host; the DaemonSet runs it",
		Long:    installGateLong,
		Example: "  pod-pacemaker install-gate --to /opt/pod-pacemaker/bin",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if to == "" {
				return invalidUsage("--to is missing: the folder on the host")
			}
			source, err := programBeside(gateName)
			if err != nil {
				return err
			}
			target := filepath.Join(to, gateName)
			if os.Geteuid() != 0 {
				return errors.New("install-gate needs root: runc runs the hook as root, so no other user may own it")
			}
			done, err := install(source, target)
			if err != nil {
				return fmt.Errorf("install %s: %w", target, err)
			}
			_, err = fmt.Fprintln(p.stdout, done)
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`folder` to copy it to")
	return cmd
}

// programBeside returns the program of this name in the folder of this executable.
func programBeside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's folder: %w", err)
	}
	return filepath.Join(filepath.Dir(self), name), nil
}

// install copies source to target, which then belongs to the user of this process. It returns a line about it.
func install(source, target string) (done string, err error) {
	program, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	if len(program) == 0 {
		return "", fmt.Errorf("%s is empty", source)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // the runtime's users may look in
		return "", err
	}
	wrote, err := wholefile.Ensure(target, program, 0o755)
	if err != nil {
		return "", err
	}
	if !wrote {
		return target + " is up to date", nil
	}
	return "installed " + target, nil
}
