package vm

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// files are the guest's files in addition to Debian's, by their paths: the units and configurations
// of a node whose administrator followed containerd's and Kubernetes' manuals.
//
//go:embed all:files
var files embed.FS

// Parts are added to the guest's Debian.
type Parts struct {
	// Binaries are containerd, runc, the CNI plugins, the kubelet and the images.
	Binaries lab.Binaries
	// Repository is the folder of the checkout, whose bin/ is built.
	Repository string
	// KubeletAccess and DaemonAccess are kubeconfigs.
	KubeletAccess, DaemonAccess []byte
}

// imageDir is the guest's folder with the images to import.
const imageDir = "/var/lib/images"

// diskSize is an upper bound: the file is sparse.
const diskSize = "4G"

// keys are the SSH keys of host and guest.
type keys struct {
	client ssh.Signer
	server ssh.PublicKey
}

// makeDisk writes the guest's disk to the file path, from a temporary folder beside it.
func makeDisk(ctx context.Context, system OS, parts Parts, path string) (k keys, err error) {
	root := path + ".tree"
	if err := os.Mkdir(root, 0o755); err != nil {
		return keys{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	if err := command(ctx, "tar", "--extract", "--numeric-owner", "--same-permissions", "--file", system.Tree, "--directory", root); err != nil {
		return keys{}, err
	}
	if err := copyParts(root, parts); err != nil {
		return keys{}, fmt.Errorf("filling the guest's disk: %w", err)
	}
	if err := enable(root); err != nil {
		return keys{}, fmt.Errorf("enabling the guest's units: %w", err)
	}
	if k, err = exchangeKeys(root); err != nil {
		return keys{}, fmt.Errorf("keys of the guest: %w", err)
	}
	return k, command(ctx, "mke2fs", "-q", "-t", "ext4", "-L", "root", "-d", root, path, diskSize)
}

func copyParts(root string, parts Parts) error {
	b := parts.Binaries
	from := map[string]string{
		"usr/local/bin/containerd": b.Containerd, "usr/local/bin/containerd-shim-runc-v2": b.Shim,
		"usr/local/bin/ctr": b.CTR, "usr/local/bin/runc": b.Runc, "usr/local/bin/kubelet": b.Kubelet,
		imageDir + "/pause.tar": b.PauseImage, imageDir + "/herd.tar": b.HerdImage,
		// The files of the systemd unit, at the manual's paths.
		"opt/pod-pacemaker/bin/pod-pacemaker":      filepath.Join(parts.Repository, "bin/pod-pacemaker"),
		"opt/pod-pacemaker/bin/pacemaker-gate":     filepath.Join(parts.Repository, "bin/pacemaker-gate"),
		"opt/pod-pacemaker/bin/pacemaker-cni":      filepath.Join(parts.Repository, "bin/pacemaker-cni"),
		"usr/share/pod-pacemaker/process-io.conf":  filepath.Join(parts.Repository, "deploy/systemd/process-io.conf"),
		"etc/systemd/system/pod-pacemaker.service": filepath.Join(parts.Repository, "deploy/systemd/pod-pacemaker.service"),
	}
	plugins, err := os.ReadDir(b.CNIDir)
	if err != nil {
		return err
	}
	for _, p := range plugins {
		from["opt/cni/bin/"+p.Name()] = filepath.Join(b.CNIDir, p.Name())
	}
	for to, source := range from {
		if err := copyFile(source, filepath.Join(root, to)); err != nil {
			return err
		}
	}
	for to, text := range map[string][]byte{
		"etc/kubernetes/kubelet.conf": parts.KubeletAccess, "etc/kubernetes/pod-pacemaker.conf": parts.DaemonAccess,
	} {
		if err := writeFile(filepath.Join(root, to), text, 0o600); err != nil {
			return err
		}
	}
	return fs.WalkDir(files, "files", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		to, err := filepath.Rel("files", path)
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(root, to), text, 0o644)
	})
}

// units start with the guest, in addition to those of Debian's packages.
var units = map[string]string{
	"containerd.service":       "/etc/systemd/system",
	"kubelet.service":          "/etc/systemd/system",
	"pod-pacemaker.service":    "/etc/systemd/system",
	"systemd-networkd.service": "/lib/systemd/system",
}

// enable enables the units, as systemctl enable does.
func enable(root string) error {
	wants := filepath.Join(root, "etc/systemd/system/multi-user.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		return err
	}
	for unit, dir := range units {
		if err := os.Symlink(filepath.Join(dir, unit), filepath.Join(wants, unit)); err != nil {
			return err
		}
	}
	return nil
}

// exchangeKeys admits a new key as root, and reads the key that the package of the SSH server
// created at its installation.
func exchangeKeys(root string) (keys, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return keys{}, err
	}
	client, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return keys{}, err
	}
	line := ssh.MarshalAuthorizedKey(client.PublicKey())
	if err := writeFile(filepath.Join(root, "root/.ssh/authorized_keys"), line, 0o600); err != nil {
		return keys{}, err
	}
	text, err := os.ReadFile(filepath.Join(root, "etc/ssh/ssh_host_ed25519_key.pub"))
	if err != nil {
		return keys{}, err
	}
	server, _, _, _, err := ssh.ParseAuthorizedKey(text)
	return keys{client: client, server: server}, err
}

// copyFile copies a file, with its mode.
func copyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

func writeFile(path string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, mode)
}
