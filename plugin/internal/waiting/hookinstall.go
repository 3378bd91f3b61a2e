package waiting

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
)

// HookName is the file name of the hook's program.
const HookName = "pacemaker-gate"

var errInstalling = errors.New("the hook is being installed")

// Install copies the hook of this version to the host, where runc finds it, and reports whether it had to. It does not
// read a hook again that it has installed and whose size and mode are the same. A running hook stays the old one. No
// container waits in the gate of this daemon until the first call has succeeded, or after an error a later one: the hook on
// the host may come from another version, which does not understand what this daemon gives it. It blocks for file I/O. Calls
// must not overlap.
func (g *Gate) Install() (installed bool, err error) {
	from, to := filepath.Join(g.o.Gate.Programs, HookName), g.o.Gate.Path
	_, none := os.Stat(from)
	switch {
	case to == "", g.o.Gate.Programs == "", from == to, errors.Is(none, fs.ErrNotExist), wholefile.Kept(to, g.size):
		g.missing.Store(nil) // an administrator has installed the hook, there is none, or it is there
		return false, nil
	}
	err = os.MkdirAll(filepath.Dir(to), 0o755) //nolint:gosec // the runtime's users may look in
	if err == nil {
		installed, err = wholefile.Install(from, to)
	}
	if err != nil {
		g.size = 0
		missing := fmt.Errorf("the hook cannot be installed: %w; the daemon tries again each minute", err)
		g.missing.Store(&missing)
		return false, err
	}
	if have, err := os.Stat(to); err == nil {
		g.size = have.Size()
	}
	g.missing.Store(nil)
	return installed, nil
}
