package vm

import (
	"fmt"
	"os/exec"
	"runtime"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// tools are the host's programs that the guest needs, each with its Debian package.
var tools = []struct{ program, packaged string }{
	{"qemu-system-x86_64", "qemu-system-x86"},
	{"mmdebstrap", "mmdebstrap"},
	{"mke2fs", "e2fsprogs"},
	{"tar", "tar"},
}

// Preflight returns an error if this machine cannot run the guest: one sentence that names the
// remedy.
func Preflight() error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("%w: the guest is an amd64 machine, and gets programs that are built for this one, which is %s", lab.ErrHost, runtime.GOARCH)
	}
	if err := lab.Preflight(); err != nil {
		return err
	}
	for _, t := range tools {
		if _, err := exec.LookPath(t.program); err != nil {
			return fmt.Errorf("%w: there is no %s; install it (Debian: apt-get install --no-install-recommends %s)", lab.ErrHost, t.program, t.packaged)
		}
	}
	return nil
}
