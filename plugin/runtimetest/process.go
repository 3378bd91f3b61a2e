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

// outputGrace is the longest wait for output after the end of a group. A process that left the group may keep the
// output open.
const outputGrace = time.Second

// process leads a process group of its own.
type process struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	over bool // guarded by mu
}

// startProcess starts cmd. The caller must wait for it. The leader is killed with this process, so that a test binary
// that is killed leaves none behind. The kernel does so at the end of the thread that started it, but Go ends no thread
// before the process, unless a goroutine has locked it.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd: cmd}, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill kills the whole group.
func (p *process) kill() error { return p.signal(-p.pid(), syscall.SIGKILL) }

// signal sends sig to the leader, or to the group: the negative number of the leader. A missing process is not an
// error.
func (p *process) signal(target int, sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	if err := syscall.Kill(target, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to process %d: %w", sig, target, err)
	}
	return nil
}

// waitGroup kills the rest of the group when the leader has ended, and returns the leader's exit code.
func (p *process) waitGroup() (int, error) {
	// Until the wait for the leader, no other process gets its number, which is also the group's.
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Waitid(unix.P_PID, p.pid(), nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	err = errors.Join(err, p.kill())
	return p.wait(), err
}

// wait waits until the leader has ended and no process holds its output open. It returns the leader's exit code as a
// shell does: 128 plus the signal for a killed process.
func (p *process) wait() int {
	_ = p.cmd.Wait() // the state says how it ended
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}
