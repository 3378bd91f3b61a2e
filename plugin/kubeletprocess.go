package plugin

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/procfs"
	"github.com/sirupsen/logrus"
)

const (
	// commLength is how much of a process's name /proc tells.
	commLength = 15
	// kubeletEvery is the time between two searches for a process that was never found.
	kubeletEvery = time.Minute
	// tick is the unit of a process's start in /proc, USER_HZ: 100 on every architecture of Go.
	tick = time.Second / 100
)

// kubeletProcess knows since when kubelet runs, and works, from its process. Made by
// newKubeletProcess; safe for concurrent use.
type kubeletProcess struct {
	proc  string   // where the host's /proc is
	names []string // as /proc/PID/comm has them; empty: it is not looked for
	log   logrus.FieldLogger

	// lastAsk is when kubelet last had the runtime make something for a pod of the API
	// server, in nanoseconds.
	lastAsk atomic.Int64

	// followed is the lastAsk up to which seen is known.
	followed atomic.Int64
	seen     atomic.Pointer[kubeletSeen]
}

// kubeletSeen is what one look at /proc found. It does not change.
type kubeletSeen struct {
	found  []processOfNode // of these names, at the last search
	run    kubeletRun      // of the youngest of them
	search time.Time       // when to search next, where none was ever found
}

// kubeletRun is the life of one process of kubelet. The zero value: nobody knows it.
type kubeletRun struct {
	// started is up to a second too early.
	started time.Time
	// works is when it was seen to start pods of the API server, which it does once it
	// has begun with all that it has; zero: not yet.
	works time.Time
}

func newKubeletProcess(o Options) *kubeletProcess {
	names := slices.Clone(o.KubeletProcess)
	for i, name := range names {
		names[i] = name[:min(len(name), commLength)]
	}
	k := &kubeletProcess{proc: o.ProcRoot, names: names, log: o.Log}
	k.seen.Store(&kubeletSeen{})
	return k
}

// asks takes note that kubelet has the runtime make something for a pod of the API
// server. It reads nothing.
func (k *kubeletProcess) asks(now time.Time) { k.lastAsk.Store(now.UnixNano()) }

// follow looks whether it was another kubelet that asked last; where nobody asked since,
// it reads nothing.
func (k *kubeletProcess) follow(now time.Time) {
	if last := k.lastAsk.Load(); k.followed.Swap(last) != last {
		k.now(now)
	}
}

// known gives what the last look found. It reads nothing, and is for handlers.
func (k *kubeletProcess) known() kubeletRun { return k.seen.Load().run }

// now gives what is known of the kubelet that runs; zero: no process of these names is
// seen. Of several the youngest counts. It reads one file of /proc for each, and all
// processes only where one of them is gone.
func (k *kubeletProcess) now(now time.Time) kubeletRun {
	before := k.seen.Load()
	after := *before
	k.look(now, &after)
	k.seen.CompareAndSwap(before, &after) // else another look was done meanwhile
	return k.known()
}

func (k *kubeletProcess) look(now time.Time, seen *kubeletSeen) {
	if len(k.names) == 0 || now.Before(seen.search) {
		return
	}
	fs, err := procfs.NewFS(k.proc)
	if err != nil {
		return
	}
	if len(seen.found) == 0 || slices.ContainsFunc(seen.found, func(p processOfNode) bool { return !lives(fs, p) }) {
		k.find(now, fs, seen)
	}
	asked := time.Unix(0, k.lastAsk.Load())
	if seen.run.works.IsZero() && !seen.run.started.IsZero() && asked.After(seen.run.started.Add(restartSlack)) {
		seen.run.works = asked
	}
}

// find looks through all processes. While kubelet is away, what was found last
// stays: nothing that is heard of it is new.
func (k *kubeletProcess) find(now time.Time, fs procfs.FS, seen *kubeletSeen) {
	boot, err := fs.Stat()
	found := processesNamed(fs, k.names)
	switch {
	case err == nil && len(found) > 0:
		youngest := slices.MaxFunc(found, func(a, b processOfNode) int { return cmp.Compare(a.started, b.started) })
		seen.found = found
		seen.run = kubeletRun{started: time.Unix(int64(boot.BootTime), 0).Add(time.Duration(youngest.started) * tick)}
	case seen.run.started.IsZero():
		if seen.search.IsZero() {
			k.log.WithFields(logrus.Fields{"kubelet_process": strings.Join(k.names, ","), logrus.ErrorKey: err}).
				Warn("no process of kubelet is seen: after a restart of kubelet, starts may end too early (--kubelet-process)")
		}
		seen.search = now.Add(kubeletEvery)
	}
}

// lives tells whether a process is still there.
func lives(fs procfs.FS, p processOfNode) bool {
	proc, err := fs.Proc(p.pid)
	return err == nil && describe(proc) == p
}

// processesNamed gives the node's processes of these names: not those of pods, which have
// their own numbers, nor what such a process is about to become when it starts another
// program.
func processesNamed(fs procfs.FS, names []string) (found []processOfNode) {
	all, err := fs.AllProcs()
	if err != nil {
		return nil
	}
	parents := map[int]int{}
	for _, proc := range all {
		if comm, err := proc.Comm(); err != nil || !slices.Contains(names, comm) {
			continue
		}
		stat, err := proc.Stat()
		if err != nil {
			continue
		}
		if status, err := proc.NewStatus(); err != nil || len(status.NSpids) > 1 {
			continue
		}
		parents[proc.PID] = stat.PPID
		found = append(found, processOfNode{pid: proc.PID, name: stat.Comm, started: stat.Starttime})
	}
	return slices.DeleteFunc(found, func(p processOfNode) bool {
		_, forked := parents[parents[p.pid]]
		return forked
	})
}
