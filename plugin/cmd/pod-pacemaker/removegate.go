package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

const removeGateLong = `Remove-gate undoes install-gate: it removes the hook pacemaker-gate from a folder
of the host, and the folder if nothing else is in it.

A running daemon names the hook to the runtime, and a container whose hook is
missing does not start. So remove-gate refuses while a daemon answers at
--run-dir: stop the daemon first.`

func (p *program) removeGateCommand() *cobra.Command {
	var from, runDir string
	cmd := &cobra.Command{
		Use:     "remove-gate --from DIR",
		Short:   "Remove the hook pacemaker-gate from a folder of the host",
		Long:    removeGateLong,
		Example: "  pod-pacemaker remove-gate --from /opt/pod-pacemaker/bin",
		Args:    takes(),
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			if from == "" {
				return &wrongUsage{"--from is missing: the folder on the host"}
			}
			_, err := admin.NewClient(adminSocket(runDir)).Status(cmd.Context())
			if !errors.Is(err, admin.ErrNoDaemon) {
				return fmt.Errorf("a daemon answers at %s: stop it first, for containers whose hook is missing do not start", adminSocket(runDir))
			}
			done, err := removeGate(filepath.Join(from, gateName))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(p.stdout, done)
			return err
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "`folder` to remove it from")
	p.addRunDir(cmd, &runDir)
	return cmd
}

// removeGate removes the hook and says what it did.
func removeGate(target string) (done string, err error) {
	err = os.Remove(target)
	if errors.Is(err, fs.ErrNotExist) {
		return target + " is not there", nil
	}
	if err != nil {
		return "", fmt.Errorf("remove the hook: %w", err)
	}
	dir := filepath.Dir(target)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("look at the hook's folder: %w", err)
	}
	if len(entries) > 0 {
		return "removed " + target, nil
	}
	if err := os.Remove(dir); err != nil {
		return "", fmt.Errorf("remove the hook's folder: %w", err)
	}
	return fmt.Sprintf("removed %s and its folder", target), nil
}
