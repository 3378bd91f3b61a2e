package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// childPatience is how long a child may take to end after SIGTERM.
const childPatience = 10 * time.Second

// child is a process that ends with this one, however this one ends.
type child struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{} // closed when the process has ended
}

// startChild starts a program that writes its output to the file log.
func startChild(args []string, log string) (*child, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(args[0], args[1:]...), log: log, exited: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	// A process group of its own: Ctrl-C reaches only this process, which passes it on.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error, 1)
	go func() {
		// The kernel ends the child when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer out.Close()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			// The exit status of a stopped child does not matter.
			_ = c.cmd.Wait()
		}
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(args[0]), err)
	}
	return c, nil
}

// await calls ready until it returns nil. It fails if the child ends first, or if ctx does.
func (c *child) await(ctx context.Context, ready func(context.Context) error) error {
	name := filepath.Base(c.cmd.Path)
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return fmt.Errorf("%s ended at once; its last lines:\n%s", name, c.tail())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w; its last lines:\n%s", name, ctx.Err(), err, c.tail())
		case <-time.After(lookEvery):
		}
	}
}

// stop ends the child and waits until it is gone.
func (c *child) stop(ctx context.Context) error {
	if err := c.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
	case <-time.After(childPatience):
	}
	err := c.signal(syscall.SIGKILL)
	<-c.exited
	return err
}

func (c *child) signal(s syscall.Signal) error {
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", filepath.Base(c.cmd.Path), err)
	}
	return nil
}

// tail returns the end of the child's output.
func (c *child) tail() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
