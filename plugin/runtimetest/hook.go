package runtimetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"github.com/containerd/nri/pkg/api"
	"github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// runcScript plays runc for one hook: a parent that lives as long as the hook, and passes on its exit code.
const runcScript = `"$@"; exit $?`

// hooksOf returns the hooks that the plugins ask for. Any other adjustment is an error.
func hooksOf(a *api.ContainerAdjustment) ([]*api.Hook, error) {
	hooks := a.GetHooks().GetCreateRuntime()
	if a.GetHooks() != nil {
		a = proto.CloneOf(a)
		a.Hooks.CreateRuntime = nil
	}
	if hasContent(a.ProtoReflect()) {
		return nil, fmt.Errorf("a plugin adjusts what this runtime cannot: %v", a)
	}
	for _, h := range hooks {
		if h.GetTimeout() != nil {
			return nil, errors.New("a plugin adds a hook with a timeout, which this runtime does not keep")
		}
	}
	return hooks, nil
}

// hasContent reports whether a message sets anything: NRI hands out trees of empty messages.
func hasContent(m protoreflect.Message) bool {
	found := false
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		single := field.Message() != nil && !field.IsList() && !field.IsMap()
		found = !single || hasContent(value.Message())
		return !found
	})
	return found
}

// runHook runs one createRuntime hook as the child of a runc. If ctx ends, the runc is killed and the hook continues
// alone.
func (c *Container) runHook(ctx context.Context, hook *api.Hook) error {
	r := c.pod.runtime
	var output bytes.Buffer
	h, err := c.startHook(hook, &output)
	if err != nil {
		return fmt.Errorf("start the hook: %w", err)
	}
	gone := make(chan int, 1)
	r.tasks.Go(func() {
		code := h.wait()
		r.mu.Lock()
		delete(r.hooks, h)
		r.mu.Unlock()
		gone <- code
	})
	select {
	case code := <-gone:
		if code != 0 {
			return fmt.Errorf("exit status %d, output: %s", code, strings.TrimSpace(output.String()))
		}
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), h.signal(h.pid(), syscall.SIGKILL))
	}
}

// startHook starts a hook's runc and counts it while it runs. The output is complete when the runc has ended.
func (c *Container) startHook(hook *api.Hook, output *bytes.Buffer) (task, error) {
	r := c.pod.runtime
	start := func() (task, error) {
		cmd, err := c.runc(hook, output)
		if err != nil {
			return nil, err
		}
		return startProcess(cmd)
	}
	if r.opts.InMemory {
		number := r.number()
		start = func() (task, error) {
			return startRoutine(number, func(runc context.Context) int {
				code, said := r.opts.Hook(runc, hook.GetArgs()[1:])
				output.WriteString(said)
				return code
			}), nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h, err := start()
	if err == nil {
		r.hooks[h] = struct{}{}
	}
	return h, err
}

// runc returns the command that plays the runc of a hook.
func (c *Container) runc(hook *api.Hook, output *bytes.Buffer) (*exec.Cmd, error) {
	r := c.pod.runtime
	state, err := json.Marshal(specs.State{Version: specs.Version, ID: c.id, Status: specs.StateCreating, Bundle: r.opts.Dir})
	if err != nil {
		return nil, fmt.Errorf("encode the container's state: %w", err)
	}
	cmd := exec.Command("/bin/sh", "-c", runcScript, "runc", hook.GetPath())
	if args := hook.GetArgs(); len(args) > 0 {
		cmd.Args = append(cmd.Args, args[1:]...)
	}
	cmd.Env = append([]string{}, hook.GetEnv()...) // not nil, because a nil Env would be this process's environment
	cmd.Dir = r.opts.Dir
	cmd.Stdin = bytes.NewReader(state)
	cmd.Stdout, cmd.Stderr = output, output
	return cmd, nil
}
