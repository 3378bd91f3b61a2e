package plugin

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// gonePath returns the file that says since when there is no daemon.
func (o Options) gonePath() string { return filepath.Join(o.RunDir, wire.NoteFolder, wire.GoneFile) }

// roomReturns is how long no pod is admitted after the daemon begins to answer, if an earlier daemon has left the waiting
// room. Pods that wait there since then ask again in any order.
const roomReturns = time.Second

// newCNI returns the installer of the waiting room, or nil if none is installed. The installer calls shut when no pod
// may wait in the room, with the reason. answers is closed once the daemon answers pods.
func newCNI(o Options, answers <-chan struct{}, shut func(why string)) *cni.Installer {
	if !o.wantsRoom() {
		return nil
	}
	return cni.New(cni.Options{
		Use: o.CNI, ConfDir: o.CNIConfDir, BinDir: o.CNIBinDir, Program: filepath.Join(o.Programs, cni.ProgramName), Socket: o.SocketPath(),
		// kubelet gives a sandbox twice the time that it gives a container.
		Timeout: 2 * o.GateTimeout, Answers: answers, Log: o.Log,
	}, shut)
}

// roomPasses sees the processes that come to the daemon from the waiting room.
type roomPasses struct {
	gate.Backend                // that answers the processes
	installer    *cni.Installer // learns that one came; nil if there is no room
	gone         string         // the file that says since when there is no daemon; see wire.GoneFile
	off          func()         // called for a process that comes although the room is off, which then goes; nil if it is not
}

// passesOf returns the roomPasses of a daemon.
func (d *Daemon) passesOf(answers gate.Backend) roomPasses {
	p := roomPasses{Backend: answers, installer: d.cni, gone: d.options.gonePath()}
	if d.options.CNI == cni.UseOff {
		p.off = sync.OnceFunc(func() {
			d.options.Log.Warnf("the waiting room is off, but an earlier daemon left its files: pods pass it at once. Remove %s from the folder of the CNI configurations, "+
				"and then %s from that of the CNI plugins", cni.FileName, cni.ProgramName)
		})
	}
	return p
}

// Wait implements gate.Backend.
func (p roomPasses) Wait(ctx context.Context, h gate.Hello, sendForecast gate.SendForecast) (gate.Verdict, error) {
	if h.Room {
		// A process that had begun to leave may have made the file after the daemon began to answer. After the next
		// restart, pods would take it for true, and not wait for the daemon.
		_ = os.Remove(p.gone) // it seldom is there
		if p.installer != nil {
			p.installer.Came()
		}
		if p.off != nil {
			p.off()
			return gate.Verdict{Go: true, Reason: reasons.Exempt}, nil
		}
	}
	return p.Backend.Wait(ctx, h, sendForecast)
}

// made tells the installer of a sandbox that the runtime makes. One in the host's network passes no CNI plugin, and one of
// a static pod passes the room without coming to the daemon.
func made(installer *cni.Installer, sandbox *api.PodSandbox) {
	own := slices.ContainsFunc(sandbox.GetLinux().GetNamespaces(), func(n *api.LinuxNamespace) bool {
		return n.GetType() == "network" && n.GetPath() != ""
	})
	if installer != nil && own && !wire.IsStatic(sandbox.GetUid()) {
		installer.Made(time.Now(), sandbox.GetNamespace())
	}
}

// roomStatus returns the state of the waiting room.
func (d *Daemon) roomStatus() admin.Room {
	r := admin.Room{Use: string(d.options.CNI), WhyNot: d.options.NoRoom(), Waiters: len(d.waiting.Room.Pods())}
	if d.cni != nil {
		s := d.cni.State()
		r.Wanted, r.Installed, r.WhyNot, r.Source, r.Emptied = true, s.Installed, s.WhyNot, s.CopiedFrom, d.cni.Changes()
	}
	return r
}
