package plugin

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
)

// roomSettles is how long after the daemon begins to answer no pod is let out of the waiting
// room: those that wait since an earlier daemon come back in any order.
const roomSettles = time.Second

// newCNI returns what installs the waiting room, and shuts it for a reason; nil: nothing does.
func newCNI(o Options, shut func(why string)) *cni.Installer {
	if !o.CNI {
		return nil
	}
	return cni.New(cni.Options{
		ConfDir: o.CNIConfDir, BinDir: o.CNIBinDir, Program: o.CNIProgram, Socket: o.SocketPath(),
		Timeout: o.RoomTimeout(), ExemptNamespaces: RoomExempt(), Log: o.Log,
	}, shut)
}

// RoomExempt returns the namespaces whose pods pass the waiting room also where no daemon
// can be asked.
func RoomExempt() []string { return []string{"kube-system"} }

// asksForRoom reports whether a container's arguments ask for the waiting room.
func asksForRoom(args []string) bool {
	return slices.Contains(args, "--cni") || slices.Contains(args, "--cni=true")
}

// roomStatus says what status tells of the waiting room.
func (d *Daemon) roomStatus() admin.Room {
	r := admin.Room{Waiters: d.waiting.Room.Waiters()}
	if d.cni != nil {
		s := d.cni.State()
		r.Wanted, r.Installed, r.WhyNot, r.Source, r.Emptied = true, s.Installed, s.WhyNot, s.Source, d.cni.Changes()
	}
	return r
}
