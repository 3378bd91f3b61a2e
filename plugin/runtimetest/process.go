package runtimetest

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outputGrace bounds the wait for output that a process which left its group
// keeps open after the group's end.
const outputGrace = time.Second

// process leads a process group of its own. Its number stays taken, by a zombie
// if need be, until reap: a signal to the group never reaches a stranger.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed once the leader has exited

	mu sync.Mutex
	// guarded by mu
	reaped bool
}

// startProcess starts cmd and one goroutine that ends with the process.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputGrace
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for {
			err := unix.Waitid(unix.P_PID, p.pid(), nil, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// signal sends sig to the leader, or to the whole group. A process that is gone
// is not an error.
func (p *process) signal(sig syscall.Signal, group bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	target := p.pid()
	if group {
		target = -target
	}
	if err := syscall.Kill(target, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to process %d: %w", sig, target, err)
	}
	return nil
}

// reap kills what is left of the group and frees the process number. It returns
// the exit code as a shell tells it: 128 plus the signal for a killed process.
// It must be called once, after ended is closed.
func (p *process) reap() (int, error) {
	killErr := p.signal(syscall.SIGKILL, true)
	p.mu.Lock()
	p.reaped = true
	err := p.cmd.Wait()
	p.mu.Unlock()
	var exit *exec.ExitError
	if errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal()), errors.Join(killErr, err)
	}
	return p.cmd.ProcessState.ExitCode(), errors.Join(killErr, err)
}
