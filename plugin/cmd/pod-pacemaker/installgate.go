package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/crd/wholefile"
)

// gateName is the file name of the hook.
const gateName = "pacemaker-gate"

const installGateLong = `Install-gate copies the hook pacemaker-gate to a folder of the host, where runc
finds it. The DaemonSet does so before the daemon starts.

The file is owned by root, has mode 0755, and replaces an older one in one step:
what runs it meanwhile has the old one or the new one. A file that is the same
already is left alone.`

func (p *program) installGateCommand() *cobra.Command {
	var to, from string
	cmd := &cobra.Command{
		Use:     "install-gate --to DIR",
		Short:   "Copy the hook pacemaker-gate to a folder of the host",
		Long:    installGateLong,
		Example: "  pod-pacemaker install-gate --to /opt/pod-pacemaker/bin",
		Args:    takes(),
		RunE: func(*cobra.Command, []string) error {
			if to == "" {
				return &wrongUsage{"--to is missing: the folder on the host"}
			}
			source, err := programBeside(gateName, from)
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
	cmd.Flags().StringVar(&from, "from", "", "`file` to copy (default: "+gateName+" beside this program)")
	return cmd
}

// programBeside returns the file that was named, or the one of this name beside this program.
func programBeside(name, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's folder: %w", err)
	}
	return filepath.Join(filepath.Dir(self), name), nil
}

// install copies source to target, where the file then belongs to the user of this process, and says what it did.
func install(source, target string) (done string, err error) {
	wanted, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	if len(wanted) == 0 {
		return "", fmt.Errorf("%s is empty", source)
	}
	sum := fmt.Sprintf("sha256 %.6x", sha256.Sum256(wanted))
	if isInstalled(target, wanted) {
		return fmt.Sprintf("%s is up to date (%s)", target, sum), nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // the runtime's users may look in
		return "", err
	}
	if err := wholefile.Write(target, wanted, 0o755); err != nil {
		return "", err
	}
	return fmt.Sprintf("installed %s (%d bytes, %s)", target, len(wanted), sum), nil
}

// isInstalled reports whether target is as install would leave it.
func isInstalled(target string, wanted []byte) bool {
	info, err := os.Lstat(target)
	if err != nil || info.Mode() != 0o755 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() {
		return false
	}
	have, err := os.ReadFile(target)
	return err == nil && bytes.Equal(have, wanted)
}
