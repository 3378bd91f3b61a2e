package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const shell = "/bin/sh"

// initScript is the container's process until it is released, in the place of runc
// init: it waits for a line on descriptor 3, then becomes the program. It ends if the
// other end is closed without one.
const initScript = `read -r go <&3 || exit 1; exec 3<&-; exec "$@"`

// task is a container's process, from before its hooks to its end.
type task struct {
	process *process
	gate    *os.File // the writing end of its descriptor 3
}

// createTask makes the waiting process and runs the hooks. It takes no lock and
// sends no event.
func (c *Container) createTask(ctx context.Context) (_ *task, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := c.newTask()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.delete())
		}
	}()
	for i, hook := range c.process.hooks {
		if err := c.runHook(ctx, hook, t.process.pid()); err != nil {
			return nil, fmt.Errorf("error running createRuntime hook #%d %q: %w", i, hook.GetPath(), err)
		}
	}
	return t, lookPath(c.process.args[0], c.process.env)
}

func (c *Container) newTask() (*task, error) {
	waits, gate, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the gate of the container's process: %w", err)
	}
	cmd := exec.Command(shell, append([]string{"-c", initScript, "init"}, c.process.args...)...)
	cmd.Env = c.process.env
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = c.spec.Stdout, c.spec.Stdout
	cmd.ExtraFiles = []*os.File{waits}
	p, err := startProcess(cmd)
	closeErr := waits.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the container's process: %w", err), closeErr, gate.Close())
	}
	t := &task{process: p, gate: gate}
	if closeErr != nil {
		return nil, errors.Join(closeErr, t.delete())
	}
	return t, nil
}

// release lets the process become the program.
func (t *task) release() error {
	if _, err := t.gate.WriteString("go\n"); err != nil {
		return fmt.Errorf("release the container's process: %w", err)
	}
	return t.gate.Close()
}

// delete kills the process and waits for its end; for a task that is not monitored.
func (t *task) delete() error {
	killErr := t.process.signal(syscall.SIGKILL, true)
	<-t.process.ended
	_, err := t.process.reap()
	if closeErr := t.gate.Close(); !errors.Is(closeErr, os.ErrClosed) {
		err = errors.Join(err, closeErr)
	}
	return errors.Join(killErr, err)
}

// lookPath says, as runc does before it reports a container as created, whether the
// program can be executed.
func lookPath(name string, env []string) error {
	if strings.Contains(name, "/") {
		_, err := exec.LookPath(name)
		return err
	}
	for _, kv := range env {
		dirs, ok := strings.CutPrefix(kv, "PATH=")
		for _, dir := range filepath.SplitList(dirs) {
			if _, err := exec.LookPath(filepath.Join(dir, name)); ok && err == nil {
				return nil
			}
		}
	}
	return &exec.Error{Name: name, Err: exec.ErrNotFound}
}
