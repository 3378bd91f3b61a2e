package waiting

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
)

// HookName is the file name of the hook's program.
const HookName = "pacemaker-gate"

// Install copies the hook of this version to the host, where runc finds it, and reports whether it had to. It does not
// read a hook again that it has installed and whose size and mode are the same. A running hook stays the old one. After
// an error no container waits in the gate of this daemon until a later call succeeds: the hook on the host may come from
// another version, which does not understand what this daemon gives it. It blocks for file I/O. Calls must not overlap.
func (g *Gate) Install() (installed bool, err error) {
	from, to := filepath.Join(g.o.Gate.Programs, HookName), g.o.Gate.Path
	if to == "" || g.o.Gate.Programs == "" || from == to {
		return false, nil
	}
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return false, nil // an administrator has installed the hook, or there is none
	}
	if wholefile.Kept(to, g.size) {
		return false, nil
	}
	err = os.MkdirAll(filepath.Dir(to), 0o755) //nolint:gosec // the runtime's users may look in
	if err == nil {
		installed, err = wholefile.Install(from, to)
	}
	if err != nil {
		g.size = 0
		g.missing.Store(&err)
		return false, err
	}
	if have, err := os.Stat(to); err == nil {
		g.size = have.Size()
	}
	g.missing.Store(nil)
	return installed, nil
}
