package plugin

import (
	"path/filepath"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
)

// roomReturns is how long the waiting room keeps every pod after the daemon begins to answer. Pods that wait since an
// earlier daemon ask again in any order.
const roomReturns = time.Second

// newCNI returns the installer of the waiting room; nil: none is installed. The installer calls shut when no pod may wait in the room, with the reason.
// connected is closed once the daemon is connected to the runtime.
func newCNI(o Options, connected <-chan struct{}, shut func(why string)) *cni.Installer {
	if !o.CNI {
		return nil
	}
	return cni.New(cni.Options{
		ConfDir: o.CNIConfDir, BinDir: o.CNIBinDir, Program: filepath.Join(o.Programs, cni.ProgramName), Socket: o.SocketPath(),
		// kubelet gives a sandbox twice the time that it gives a container.
		Timeout: 2 * o.GateTimeout, Connected: connected, Log: o.Log,
	}, shut)
}

// roomStatus returns the state of the waiting room.
func (d *Daemon) roomStatus() admin.Room {
	r := admin.Room{Waiters: len(d.waiting.Room.Pods())}
	if d.cni != nil {
		s := d.cni.State()
		r.Wanted, r.Installed, r.WhyNot, r.Source, r.Emptied = true, s.Installed, s.WhyNot, s.CopiedFrom, d.cni.Changes()
	}
	return r
}
