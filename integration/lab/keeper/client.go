package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Keeper is a connection to a run's keeper. It is safe for concurrent use.
type Keeper struct {
	// Run is the run that is kept.
	Run Run

	rpc *rpc.Client
	// These two are set where this process started the keeper.
	lifeline *os.File
	process  *exec.Cmd
}

// Launch begins a run with a folder below parent and starts its keeper, which
// takes the run down when this process ends, however it ends.
func Launch(ctx context.Context, parent string) (*Keeper, error) {
	run, alive, err := newRun(parent)
	if err != nil {
		return nil, err
	}
	defer alive.Close() // the keeper has it now
	k := &Keeper{Run: run}
	problem, err := k.exec(alive)
	if err == nil && problem != "" {
		err = errors.New(problem)
	}
	if err == nil {
		err = k.connect(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the keeper of the run: %w", err), k.abandon())
	}
	return k, nil
}

// exec starts the keeper and waits for its report.
func (k *Keeper) exec(alive *os.File) (problem string, err error) {
	lifelineEnd, lifeline, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer lifelineEnd.Close()
	k.lifeline = lifeline
	report, reportEnd, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer report.Close()
	log, err := os.Create(filepath.Join(k.Run.LogDir(), "keeper.log"))
	if err != nil {
		return "", errors.Join(err, reportEnd.Close())
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe", k.Run.Dir)
	cmd.Args[0] = programName
	cmd.Dir = "/"
	// A proxy for the world outside is none for the run's own servers.
	cmd.Env = append(os.Environ(), "NO_PROXY=*", "no_proxy=*")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lifelineEnd, reportEnd, alive}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS}
	err = cmd.Start()
	if err := errors.Join(err, reportEnd.Close()); err != nil {
		return "", err
	}
	k.process = cmd
	text, err := io.ReadAll(report)
	return string(text), err
}

// abandon ends a keeper that did not come up, and removes the folder.
func (k *Keeper) abandon() error {
	var err error
	if k.lifeline != nil {
		err = k.lifeline.Close()
	}
	if k.process != nil {
		// The keeper has reported why it failed; its exit code says no more.
		_ = k.process.Wait()
	}
	return errors.Join(err, teardown(context.Background(), k.Run, os.Getpid(), nothingMounted))
}

// Dial connects to the keeper of a run that lives.
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
	k.rpc = rpc.NewClient(conn)
	return nil
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

// Signal signals a process that Start started. It is no error when the process
// has ended.
func (k *Keeper) Signal(ctx context.Context, pid int, sig syscall.Signal) error {
	return k.call(ctx, "Signal", SignalArgs{PID: pid, Signal: sig}, &Nothing{})
}

// Wait blocks until a process that Start started ends and returns its exit
// code, -1 when a signal ended it.
func (k *Keeper) Wait(ctx context.Context, pid int) (code int, err error) {
	reply := new(int)
	if err := k.call(ctx, "Wait", pid, reply); err != nil {
		return 0, err
	}
	return *reply, nil
}

// Forward opens a port on the host's 127.0.0.1 that leads to a TCP address
// inside the run's network namespace, for as long as the run lives.
func (k *Keeper) Forward(ctx context.Context, inside string) (outside string, err error) {
	reply := new(string)
	if err := k.call(ctx, "Forward", inside, reply); err != nil {
		return "", err
	}
	return *reply, nil
}

// Release lets the run live on when this process ends. Only Stop ends it then.
func (k *Keeper) Release(ctx context.Context) error {
	return k.call(ctx, "Release", Nothing{}, &Nothing{})
}

// Stop takes the run down and waits until that is done. The connection is of no
// use afterwards. If ctx ends before, the keeper goes on by itself.
func (k *Keeper) Stop(ctx context.Context) error {
	err := k.call(ctx, "Stop", Nothing{}, &Nothing{})
	err = errors.Join(err, k.rpc.Close())
	if k.process == nil {
		return err
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
