package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/waiter"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// memorySockets take the place of the daemon's unix sockets, and of the lock of their folder.
type memorySockets struct {
	mu        sync.Mutex
	listeners map[string]*runtimetest.Listener
	locked    map[string]bool
}

// serve is a rundir.Listening.
func (m *memorySockets) serve(ctx context.Context, path string, serve func(context.Context, net.Listener) error) error {
	l := runtimetest.NewListener()
	m.mu.Lock()
	m.listeners[path] = l
	m.mu.Unlock()
	defer l.Close()
	return serve(ctx, l)
}

func (m *memorySockets) dial(ctx context.Context, path string) (net.Conn, error) {
	m.mu.Lock()
	l := m.listeners[path]
	m.mu.Unlock()
	if l == nil {
		return nil, unix.ENOENT
	}
	return l.Dial(ctx)
}

// hookHost is the operating system of one hook that runs as a goroutine. It has one connection and one lock.
type hookHost struct {
	sockets *memorySockets
	runc    context.Context

	conn    net.Conn
	arrives chan []byte // what was read; closed with the connection
	unread  []byte
	closed  bool // nothing more arrives
	folder  string
}

// The descriptors of a hookHost.
const (
	connFD = 3
	lockFD = 4
)

func (h *hookHost) Connect(path string, hello []byte) (int, error) {
	conn, err := h.sockets.dial(h.runc, path)
	if err != nil {
		return -1, err
	}
	if _, err := conn.Write(hello); err != nil {
		_ = conn.Close() // it is broken
		return -1, err
	}
	arrives := make(chan []byte)
	h.conn, h.arrives, h.unread, h.closed = conn, arrives, nil, false
	go func() {
		defer close(arrives)
		for {
			buf := make([]byte, wire.MaxLine)
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			arrives <- buf[:n]
		}
	}()
	return connFD, nil
}

func (h *hookHost) Read(_ int, p []byte) (int, error) {
	switch {
	case len(h.unread) > 0:
		n := copy(p, h.unread)
		h.unread = h.unread[n:]
		return n, nil
	case h.closed:
		return 0, nil
	}
	return 0, unix.EAGAIN
}

func (h *hookHost) Lock(folder string) (int, error) {
	h.sockets.mu.Lock()
	defer h.sockets.mu.Unlock()
	if h.sockets.locked[folder] {
		return -1, unix.EWOULDBLOCK
	}
	h.sockets.locked[folder], h.folder = true, folder
	return lockFD, nil
}

func (h *hookHost) Close(fd int) {
	if fd == lockFD {
		h.sockets.mu.Lock()
		defer h.sockets.mu.Unlock()
		delete(h.sockets.locked, h.folder)
		h.folder = ""
		return
	}
	_ = h.conn.Close() // no data can be lost
	for range h.arrives {
		continue
	}
}

func (h *hookHost) Await(fd int, timeout time.Duration) (orphaned, answered bool, err error) {
	var arrives <-chan []byte
	if fd >= 0 {
		if len(h.unread) > 0 || h.closed {
			return h.Orphaned(), true, nil
		}
		arrives = h.arrives
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-h.runc.Done():
		return true, false, nil
	case data, open := <-arrives:
		h.unread, h.closed = data, !open
		return false, true, nil
	case <-timer.C:
		return false, false, nil
	}
}

func (h *hookHost) Orphaned() bool { return h.runc.Err() != nil }

// hook does what the program pacemaker-gate does.
func (b *bubble) hook(runc context.Context, args []string) (code int, output string) {
	socket, hello, forecast, _, err := wire.ParseArgv(args)
	if err != nil {
		return 0, "pod-pacemaker: starts unpaced: wrong arguments: " + err.Error()
	}
	host, now := &hookHost{sockets: b.sockets, runc: runc}, time.Now()
	b.seen.hookWaits(hello)
	w := waiter.New(waiter.Start{
		Socket: socket, Hello: hello, Deadline: now.Add(min(hello.Deadline.Sub(now), time.Hour)), Forecast: forecast, Host: host,
	}, now)
	o := w.Wait()
	b.seen.hookLeaves(hello, o)
	host.end()
	switch {
	case o.Unpaced:
		return 0, "pod-pacemaker: starts unpaced: " + o.Reason
	case o.Starts:
		return 0, ""
	}
	return 1, fmt.Sprintf("pod-pacemaker: nothing started: %s", o.Reason)
}

// network does what the program pacemaker-cni does, once it is installed. A pod leaves the room when the folder of the CNI
// configurations changes, and keeps its place in the queue.
func (b *bubble) network(add context.Context, pod runtimetest.PodSpec, sandbox string) error {
	if !b.shape.Room || pod.Namespace == "kube-system" || !cni.InPlace(b.options.CNIConfDir) {
		return nil
	}
	const daemonGrace, lonelyPace, aloneMost = 10 * time.Second, 250 * time.Millisecond, time.Minute
	host, now := &hookHost{sockets: b.sockets, runc: add}, time.Now()
	hello := wire.Hello{PodUID: pod.UID, ContainerID: sandbox, Name: pod.Namespace + "/" + pod.Name, Since: now, Room: true}
	if since, _ := b.notes.LoadAndDelete(pod.UID); since != nil {
		hello.Since, _ = since.(time.Time)
	}
	folder := b.folder.Load()
	check := func(*waiter.Waiter) *waiter.Outcome {
		if b.folder.Load() == folder {
			return nil
		}
		b.notes.Store(pod.UID, hello.Since)
		return &waiter.Outcome{Reason: "the CNI configuration changed"}
	}
	b.seen.entersRoom(types.UID(pod.UID))
	o := waiter.New(waiter.Start{
		Socket: b.options.SocketPath(), Hello: hello,
		Deadline: now.Add(b.shape.RoomTimeout()), Forecast: wire.Answer{Kind: wire.Forecast, LeaveAt: now.Add(daemonGrace), Pace: lonelyPace},
		AloneMost: aloneMost, Host: host, Check: check, CheckEvery: 200 * time.Millisecond,
	}, now).Wait()
	b.seen.leavesRoom(types.UID(pod.UID), o)
	host.end()
	if !o.Starts {
		return errors.New("pod-pacemaker: waiting to start: " + o.Reason)
	}
	return nil
}

// writeCNI writes a CNI configuration, the program of its plugin, and the one of the waiting room.
func (b *bubble) writeCNI(dir string) {
	b.options.CNI, b.options.CNIConfDir, b.options.CNIBinDir = cni.UseOn, filepath.Join(dir, "net.d"), filepath.Join(dir, "bin")
	b.options.Programs = filepath.Join(dir, "programs")
	for path, content := range map[string]string{
		filepath.Join(b.options.CNIConfDir, "10-net.conflist"): `{"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "ptp"}]}`,
		filepath.Join(b.options.CNIBinDir, "ptp"):              "",
		filepath.Join(b.options.Programs, cni.ProgramName):     "#!/bin/false",
	} {
		require.NoError(b.t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(b.t, os.WriteFile(path, []byte(content), 0o700))
	}
}

// changeCNI changes the folder of the CNI configurations.
func (b *bubble) changeCNI() {
	n := b.folder.Add(1)
	require.NoError(b.t, os.WriteFile(filepath.Join(b.options.CNIConfDir, "20-other.conf"), fmt.Append(nil, "# ", n), 0o600))
}

// end is the end of the hook's process, with which the kernel closes what is open.
func (h *hookHost) end() {
	if h.conn != nil {
		h.Close(connFD)
	}
	if h.folder != "" {
		h.Close(lockFD)
	}
}

var _ waiter.Host = (*hookHost)(nil)
