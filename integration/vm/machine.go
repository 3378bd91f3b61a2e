package vm

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// bootTimeout bounds the time from the start of a machine until SSH works.
const bootTimeout = 10 * time.Minute

// sshInside is QEMU's address for the guest's SSH server, in the lab's network.
const sshInside = "127.0.0.1:2222"

// idle are units of Debian that run but are of no use here.
var idle = []string{"e2scrub_reap.service", "e2scrub_all.timer", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "fstrim.timer"}

// Machine is the guest, running or not. Start, Cut and Reboot of one machine must not overlap. The
// rest is safe for concurrent use.
type Machine struct {
	server *lab.APIServer
	system OS
	disk   string
	keys   keys
	ssh    string // address of the guest's SSH server on the host

	mu     sync.Mutex
	qemu   *lab.Service
	client *ssh.Client // nil while not connected
	boots  int
}

// NewMachine creates a guest with its own disk in the folder of the server's run. It does not start
// it.
func NewMachine(ctx context.Context, server *lab.APIServer, system OS, parts Parts) (*Machine, error) {
	m := &Machine{server: server, system: system, disk: filepath.Join(server.Run().Dir, "disk.img")}
	var err error
	if m.keys, err = makeDisk(ctx, system, parts, m.disk); err != nil {
		return nil, err
	}
	m.ssh, err = server.Forward(ctx, sshInside)
	return m, err
}

// Start boots the machine with additional kernel parameters, and waits until SSH works.
func (m *Machine) Start(ctx context.Context, kernel ...string) error {
	m.boots++
	line := append([]string{"root=/dev/vda", "rw", "console=ttyS0", "quiet", "systemd.show_status=0"}, kernel...)
	for _, unit := range idle {
		line = append(line, "systemd.mask="+unit)
	}
	program, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return err
	}
	qemu, err := m.server.StartService(ctx, lab.ServiceSpec{
		Name: fmt.Sprintf("machine-%d", m.boots),
		Args: []string{
			program, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2560M",
			"-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio",
			"-kernel", m.system.Kernel, "-initrd", m.system.Initrd, "-append", strings.Join(line, " "),
			"-drive", "file=" + m.disk + ",format=raw,if=virtio,cache=writeback",
			"-netdev", "user,id=net,hostfwd=tcp:" + sshInside + "-:22", "-device", "virtio-net-pci,netdev=net",
			"-device", "virtio-rng-pci",
		},
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.qemu = qemu
	m.mu.Unlock()
	return m.awaitSSH(ctx)
}

// Cut ends the machine like a loss of power.
func (m *Machine) Cut(ctx context.Context) error {
	m.disconnect()
	return m.qemu.Kill(ctx)
}

// Reboot reboots the guest in the regular way, and waits until SSH works again.
func (m *Machine) Reboot(ctx context.Context) error {
	before, err := m.Run(ctx, "cat /proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	// The guest may go down before it answers.
	if _, err := m.Run(ctx, "systemctl reboot"); err != nil {
		if refused := (*ssh.ExitError)(nil); errors.As(err, &refused) {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	for {
		now, err := m.Run(ctx, "cat /proc/sys/kernel/random/boot_id")
		if err == nil && now != before {
			return nil
		}
		if err := m.pause(ctx, err); err != nil {
			return fmt.Errorf("the guest did not reboot: %w", err)
		}
	}
}

func (m *Machine) awaitSSH(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	for {
		_, err := m.Run(ctx, "true")
		if err == nil {
			return nil
		}
		if !m.qemu.Running() {
			return fmt.Errorf("the guest did not boot; its console ends:\n%s", m.qemu.Tail(30))
		}
		if err := m.pause(ctx, err); err != nil {
			return fmt.Errorf("no SSH connection to the guest: %w; its console ends:\n%s", err, m.qemu.Tail(30))
		}
	}
}

// pause waits for a while, or returns the final error.
func (m *Machine) pause(ctx context.Context, last error) error {
	select {
	case <-ctx.Done():
		return errors.Join(last, ctx.Err())
	case <-time.After(500 * time.Millisecond):
		return nil
	}
}
