package runtimetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// runcScript plays runc for one hook: a parent that is there as long as the hook
// runs, and passes on how it ended.
const runcScript = `"$@"; exit $?`

// hookOutputLimit bounds how much of a hook's output an error may carry.
const hookOutputLimit = 4096

// hookProcess is the runc of a hook, and what is left of the hook after it.
type hookProcess struct {
	*process
	out    *os.File      // the reading end of its output
	output limitedBuffer // complete once gone is closed
	gone   chan struct{} // closed once every process of the hook has ended

	outMu sync.Mutex
	// guarded by outMu
	outClosed bool
}

// runHook runs one createRuntime hook as the child of a runc. If ctx ends the runc
// is killed and the hook is left to itself.
func (c *Container) runHook(ctx context.Context, hook *api.Hook, pid int) error {
	state, err := json.Marshal(specs.State{
		Version:     specs.Version,
		ID:          c.id,
		Status:      specs.StateCreating,
		Pid:         pid,
		Bundle:      c.bundle(),
		Annotations: c.process.annotations,
	})
	if err != nil {
		return fmt.Errorf("encode the container's state: %w", err)
	}
	h, err := c.startHook(hook, state)
	if err != nil {
		return err
	}
	var timeout <-chan time.Time
	if seconds := hook.GetTimeout().GetValue(); seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-h.gone:
		if code := h.cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("exit status %d, output: %s", code, strings.TrimSpace(h.output.String()))
		}
		return nil
	case <-timeout:
		return errors.Join(errors.New("hook timed out"), h.signal(syscall.SIGKILL, true))
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), h.signal(syscall.SIGKILL, false))
	}
}

// startHook starts the runc and the goroutine that follows it until the hook is gone.
func (c *Container) startHook(hook *api.Hook, state []byte) (*hookProcess, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the hook's output: %w", err)
	}
	args := append([]string{"-c", runcScript, "runc", hook.GetPath()}, hookArgs(hook)...)
	cmd := exec.Command(shell, args...)
	cmd.Env = hook.GetEnv()
	if cmd.Env == nil {
		cmd.Env = []string{} // else it would get ours
	}
	cmd.Dir = c.bundle()
	cmd.Stdin = bytes.NewReader(state)
	cmd.Stdout, cmd.Stderr = in, in
	r := c.pod.runtime
	h := &hookProcess{out: out, gone: make(chan struct{})}
	r.addHook(h) // first, so that a hook which runs is counted
	h.process, err = startProcess(cmd)
	closeErr := in.Close()
	if err != nil {
		r.removeHook(h)
		return nil, errors.Join(fmt.Errorf("start the hook: %w", err), closeErr, out.Close())
	}
	r.tasks.Go(func() { r.followHook(h) })
	if closeErr != nil {
		return nil, errors.Join(closeErr, h.signal(syscall.SIGKILL, true))
	}
	return h, nil
}

func (r *Runtime) addHook(h *hookProcess) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hooks[h] = struct{}{}
}

func (r *Runtime) removeHook(h *hookProcess) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.hooks, h)
}

// hookArgs are the hook's arguments after its own name.
func hookArgs(hook *api.Hook) []string {
	if args := hook.GetArgs(); len(args) > 0 {
		return args[1:]
	}
	return nil
}

// followHook reads the output until nobody holds it open: the hook, too, is gone then.
func (r *Runtime) followHook(h *hookProcess) {
	_, err := io.Copy(&h.output, h.out)
	err = errors.Join(err, h.closeOut())
	<-h.ended
	_, reapErr := h.reap()
	if err := errors.Join(err, reapErr); err != nil {
		r.log.WithError(err).Error("The end of a hook was not clean")
	}
	r.removeHook(h)
	close(h.gone)
}

// destroy kills the hook, for a runtime that is being stopped. One that has left its process
// group is not waited for.
func (h *hookProcess) destroy() error {
	return errors.Join(h.limitOut(), h.signal(syscall.SIGKILL, true))
}

// limitOut bounds the wait for more output of a hook that has not just ended.
func (h *hookProcess) limitOut() error {
	h.outMu.Lock()
	defer h.outMu.Unlock()
	if h.outClosed {
		return nil
	}
	return h.out.SetReadDeadline(time.Now().Add(outputGrace))
}

func (h *hookProcess) closeOut() error {
	h.outMu.Lock()
	defer h.outMu.Unlock()
	h.outClosed = true
	return h.out.Close()
}

// limitedBuffer keeps the first hookOutputLimit bytes written to it.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := hookOutputLimit - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
