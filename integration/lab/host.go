package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pickSnapshotter returns overlayfs if it can be mounted below dir, and otherwise native, which
// copies.
func pickSnapshotter(dir string) (name string, err error) {
	test, err := os.MkdirTemp(dir, "overlay-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(test)) }()
	for _, sub := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(test, sub), 0o755); err != nil {
			return "", err
		}
	}
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", test)
	merged := filepath.Join(test, "merged")
	if unix.Mount("overlay", merged, "overlay", 0, options) != nil {
		return "native", nil
	}
	return "overlayfs", unix.Unmount(merged, 0)
}

// mayLowerOOMScore reports whether processes may be protected from the kernel's out-of-memory
// killer, which requires CAP_SYS_RESOURCE.
func mayLowerOOMScore() (bool, error) {
	return hasCapability(unix.CAP_SYS_RESOURCE)
}

// hasCapability reports whether this process has an effective capability.
func hasCapability(number uint) (bool, error) {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return false, err
	}
	defer status.Close()
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		set, ok := strings.CutPrefix(lines.Text(), "CapEff:")
		if !ok {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimSpace(set), 16, 64)
		return bits&(1<<number) != 0, err
	}
	return false, errors.Join(errors.New("/proc/self/status has no line about capabilities"), lines.Err())
}
