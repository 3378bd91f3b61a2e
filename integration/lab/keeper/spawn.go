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

// children are the processes that the keeper started. children also reaps all their orphans. So it
// waits for any child, and no other code in this process may wait.
type children struct {
	mu sync.Mutex
	// running has the processes that are not reaped yet, by process ID, and the exit codes of reaped
	// processes until they are requested.
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
	// The lock makes sure that start registers a process before it is reaped, even if it ends at
	// once.
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
	case <-ch.exited: // an orphan has the ID of an ended process
	default:
		ch.code = status.ExitStatus() // -1 after a signal
		close(ch.exited)
	}
	return true
}

// start runs a program in the calling thread's namespaces, and appends its output to the file log.
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
	// os.StartProcess may wait for children itself, so it cannot be used here.
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

// signal sends a signal to a started process, unless the process has ended.
func (c *children) signal(pid int, sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch, ok := c.running[pid]
	if !ok {
		return fmt.Errorf("process %d was not started here", pid)
	}
	select {
	case <-ch.exited:
		return nil // its ID may belong to another process by now
	default:
		return syscall.Kill(pid, sig)
	}
}

// wait waits until a started process ends, and returns its exit code, or -1 after a signal.
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
