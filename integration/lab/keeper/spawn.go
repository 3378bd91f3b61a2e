package keeper

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// children are the processes the keeper started. It also reaps every orphan of
// theirs, so it waits for any child, and nobody else in this process may wait.
type children struct {
	mu sync.Mutex
	// running, by process ID, holds those not reaped yet and, until asked for,
	// the exit codes of those that were.
	running map[int]*child
}

type child struct {
	exited chan struct{} // closed when the process was reaped
	code   int           // valid once exited is closed
}

// newChildren begins to reap; stop ends that.
func newChildren() (c *children, stop func(), err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, nil, fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	c = &children{running: map[int]*child{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			for c.reapOne() {
			}
		}
	}()
	stop = func() {
		signal.Stop(ended)
		close(ended)
	}
	return c, stop, nil
}

func (c *children) reapOne() bool {
	// The lock keeps a process that ends at once from being reaped before start
	// has registered it.
	c.mu.Lock()
	defer c.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.EINTR) {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	ch, ok := c.running[pid]
	if !ok {
		return true
	}
	select {
	case <-ch.exited: // an orphan has the number of one that ended
	default:
		ch.code = status.ExitStatus() // -1 for a signal
		close(ch.exited)
	}
	return true
}

// start runs a program, its output appended to the file log, on the calling
// thread's namespaces.
func (c *children) start(args, env []string, log string) (int, error) {
	if len(args) == 0 {
		return 0, errors.New("no program to start")
	}
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return 0, err
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	// Not os.StartProcess: it may wait for children of its own.
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: []uintptr{null.Fd(), out.Fd(), out.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", args[0], err)
	}
	c.running[pid] = &child{exited: make(chan struct{})}
	return pid, nil
}

// signal sends a signal to a started process, unless it ended already.
func (c *children) signal(pid int, sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch, ok := c.running[pid]
	if !ok {
		return fmt.Errorf("process %d was not started here", pid)
	}
	select {
	case <-ch.exited:
		return nil // its number may be another process's by now
	default:
		return syscall.Kill(pid, sig)
	}
}

// wait blocks until a started process ends and returns its exit code, -1 when a
// signal ended it.
func (c *children) wait(pid int) (int, error) {
	c.mu.Lock()
	ch, ok := c.running[pid]
	c.mu.Unlock()
	if !ok {
		return 0, fmt.Errorf("process %d was not started here", pid)
	}
	<-ch.exited
	return ch.code, nil
}
