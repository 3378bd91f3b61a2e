package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
)

// debianRelease is the release of Debian in the guest.
const debianRelease = "bookworm"

// packages are the guest's packages in addition to Debian's essential ones, without recommended
// packages.
var packages = []string{
	"systemd", "systemd-sysv", "dbus", "udev", "kmod", "iproute2", "procps", "mount", "zstd",
	"linux-image-cloud-amd64", "initramfs-tools", "openssh-server",
	"apparmor", "selinux-policy-default", "policycoreutils", "selinux-utils",
}

// unneeded are folders of packages that the guest does not need.
var unneeded = []string{"/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*"}

// initramfs limits the initial file system to the modules that find the disk, because the guest
// unpacks it without hardware virtualization.
const initramfs = `mkdir -p "$1/etc/initramfs-tools/conf.d" &&
printf 'MODULES=list\nCOMPRESS=zstd\n' >"$1/etc/initramfs-tools/conf.d/vm" &&
printf 'virtio_pci\nvirtio_blk\next4\n' >"$1/etc/initramfs-tools/modules"`

// OS is the guest's operating system, as files in the cache.
type OS struct {
	// Tree is a tar file of the root file system.
	Tree string
	// Kernel and Initrd are the files that QEMU boots.
	Kernel, Initrd string
}

// BuildOS builds the operating system from Debian's packages, which takes minutes, unless the cache
// holds it.
func BuildOS(ctx context.Context, cacheDir string) (OS, error) {
	args := []string{
		"--mode=root", "--variant=minbase", "--components=main", "--include=" + strings.Join(packages, ","),
		`--aptopt=Apt::Install-Recommends "false"`, `--aptopt=Acquire::Retries "3"`, "--essential-hook=" + initramfs,
	}
	for _, path := range unneeded {
		args = append(args, "--dpkgopt=path-exclude="+path)
	}
	args = append(args, debianRelease)
	// This folder has its own lock, so this does not wait for the lab's builds.
	cache := build.Cache{Dir: filepath.Join(cacheDir, "vm")}
	dir, err := cache.Entry(ctx, "debian-"+debianRelease, args, func(dir string) error {
		return fillOS(ctx, dir, args)
	})
	return OS{
		Tree:   filepath.Join(dir, "tree.tar"),
		Kernel: filepath.Join(dir, "vmlinuz"),
		Initrd: filepath.Join(dir, "initrd.img"),
	}, err
}

func fillOS(ctx context.Context, dir string, args []string) error {
	tree := filepath.Join(dir, "tree.tar")
	if err := command(ctx, "mmdebstrap", append(args, tree)...); err != nil {
		return err
	}
	// The names in /boot contain the kernel's version. / has links without it.
	boot, err := os.MkdirTemp(dir, "boot-")
	if err != nil {
		return err
	}
	if err := command(ctx, "tar", "--extract", "--file", tree, "--directory", boot, "--wildcards", "./boot/*", "./vmlinuz", "./initrd.img"); err != nil {
		return err
	}
	for _, name := range []string{"vmlinuz", "initrd.img"} {
		link, err := os.Readlink(filepath.Join(boot, name))
		if err != nil {
			return fmt.Errorf("the guest's kernel: %w", err)
		}
		if err := os.Rename(filepath.Join(boot, link), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return os.RemoveAll(boot)
}

// command runs a program of the host. The error contains its output.
func command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return errors.Join(fmt.Errorf("%s: %w\n%s", name, err, said.String()), ctx.Err())
	}
	return nil
}
