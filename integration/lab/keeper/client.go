package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Keeper is a connection to a run's keeper. It is safe for concurrent use.
type Keeper struct {
	// Run is the keeper's run.
	Run Run

	rpc *rpc.Client
	pid int // the keeper's process
	// Both are set if this process started the keeper.
	lifeline *os.File
	process  *exec.Cmd
}

// Dial connects to the keeper of a live run.
func Dial(ctx context.Context, run Run) (*Keeper, error) {
	k := &Keeper{Run: run}
	if err := k.connect(ctx); err != nil {
		return nil, fmt.Errorf("reaching the keeper of run %s: %w", run.ID, err)
	}
	return k, nil
}

func (k *Keeper) connect(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", k.Run.socket())
	if err != nil {
		return err
	}
	peer, err := peerPID(conn)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	k.rpc, k.pid = rpc.NewClient(conn), peer
	return nil
}

// peerPID returns the process at the other end of a unix socket.
func peerPID(conn net.Conn) (int, error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("%T is no unix socket", conn)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var peerErr error
	err = raw.Control(func(fd uintptr) {
		peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, peerErr); err != nil {
		return 0, fmt.Errorf("asking who keeps the run: %w", err)
	}
	return int(peer.Pid), nil
}

// call calls the keeper and waits for the reply or the end of ctx.
func (k *Keeper) call(ctx context.Context, method string, args, reply any) error {
	call := k.rpc.Go("Keeper."+method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return call.Error
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Start starts a process of the run and returns its ID.
func (k *Keeper) Start(ctx context.Context, args StartArgs) (pid int, err error) {
	reply := new(int)
	err = k.call(ctx, "Start", args, reply)
	return *reply, err
}

// Signal signals a process that Start started. It returns no error if the process has ended.
func (k *Keeper) Signal(ctx context.Context, pid int, sig syscall.Signal) error {
	return k.call(ctx, "Signal", SignalArgs{PID: pid, Signal: sig}, &Nothing{})
}

// Wait waits until a process that Start started ends, and returns its exit code, or -1 after a
// signal.
func (k *Keeper) Wait(ctx context.Context, pid int) (code int, err error) {
	reply := new(int)
	if err := k.call(ctx, "Wait", pid, reply); err != nil {
		return 0, err
	}
	return *reply, nil
}

// Forward opens a port on the host's 127.0.0.1 that leads to a TCP address inside the run's network
// namespace, until the run ends.
func (k *Keeper) Forward(ctx context.Context, inside string) (outside string, err error) {
	reply := new(string)
	if err := k.call(ctx, "Forward", inside, reply); err != nil {
		return "", err
	}
	return *reply, nil
}

// Release keeps the run alive when this process ends: only Stop, over Dial, ends it then. The
// connection cannot be used any more. After an error the run still belongs to this process.
func (k *Keeper) Release(ctx context.Context) error {
	if err := k.call(ctx, "Release", Nothing{}, &Nothing{}); err != nil {
		return fmt.Errorf("releasing run %s: %w", k.Run.ID, err)
	}
	err := k.rpc.Close()
	if k.lifeline != nil {
		err = errors.Join(err, k.lifeline.Close())
	}
	return err
}

// Stop takes the run down and waits until the keeper has ended. The connection cannot be used any
// more. If ctx ends before, the keeper continues.
func (k *Keeper) Stop(ctx context.Context) error {
	err := k.call(ctx, "Stop", Nothing{}, &Nothing{})
	err = errors.Join(err, k.rpc.Close())
	if k.process == nil {
		return errors.Join(err, k.awaitEnd(ctx))
	}
	err = errors.Join(err, k.lifeline.Close())
	exited := make(chan error, 1)
	go func() { exited <- k.process.Wait() }()
	select {
	case e := <-exited:
		return errors.Join(err, e)
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
}

// awaitEnd waits until a keeper that is not a child of this process has ended.
func (k *Keeper) awaitEnd(ctx context.Context) error {
	return until(ctx, fmt.Sprintf("keeper %d to end", k.pid), func() (bool, error) {
		return ended(k.pid)
	})
}

// ended reports whether a process has ended, even if its parent has not waited for it yet.
func ended(pid int) (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// The state follows the name, which stands in parentheses and may contain some.
	state := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(state) > 0 && (state[0] == 'Z' || state[0] == 'X'), nil
}
