package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
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
		RunE: does(func(*cobra.Command, []string) error {
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
			done, err := owner{}.install(source, target)
			if err != nil {
				return fmt.Errorf("install %s: %w", target, err)
			}
			_, err = fmt.Fprintln(p.stdout, done)
			return err
		}),
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

// owner is the user that the hook belongs to: root, but for tests.
type owner struct{ uid, gid uint32 }

// install copies source to target and says what it did.
func (o owner) install(source, target string) (done string, err error) {
	wanted, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	if len(wanted) == 0 {
		return "", fmt.Errorf("%s is empty", source)
	}
	sum := fmt.Sprintf("sha256 %.6x", sha256.Sum256(wanted))
	same, err := o.hasInstalled(target, wanted)
	if err != nil {
		return "", err
	}
	if same {
		return fmt.Sprintf("%s is up to date (%s)", target, sum), nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // the runtime's users may look in
		return "", err
	}
	if err := o.replace(target, wanted); err != nil {
		return "", err
	}
	return fmt.Sprintf("installed %s (%d bytes, %s)", target, len(wanted), sum), nil
}

// hasInstalled reports whether target is as install would leave it.
func (o owner) hasInstalled(target string, wanted []byte) (bool, error) {
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.IsDir() {
		return false, errors.New("a folder is in the way")
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || (owner{stat.Uid, stat.Gid}) != o || info.Mode() != 0o755 {
		return false, nil
	}
	have, err := os.ReadFile(target)
	if err != nil {
		return false, err
	}
	return bytes.Equal(have, wanted), nil
}

// replace puts a file in the place of target, whole and on disk, or leaves
// everything as it was.
func (o owner) replace(target string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(target), "."+gateName+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = errors.Join(f.Chown(int(o.uid), int(o.gid)), f.Chmod(0o755), f.Sync())
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}
