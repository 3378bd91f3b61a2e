package runtimetest

import (
	"context"
	"sync"
	"syscall"
)

// task is what runs in a container, or as a hook.
type task interface {
	pid() int
	// signal sends sig to the target: the pid, or its negative number for the whole group.
	signal(target int, sig syscall.Signal) error
	kill() error
	// waitGroup waits for the end, ends what is left, and returns the exit code; wait does not end what is left.
	waitGroup() (int, error)
	wait() int
}

// routine is a task that is a function of this process.
type routine struct {
	number int
	end    context.CancelFunc
	done   chan struct{}

	mu sync.Mutex
	// guarded by mu
	code   int
	killed bool
}

// startRoutine runs a function whose context ends with the first signal, and that returns its exit code.
func startRoutine(number int, run func(context.Context) int) *routine {
	ctx, cancel := context.WithCancel(context.Background())
	r := &routine{number: number, end: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		code := run(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.code = code; r.killed {
			r.code = 128 + int(syscall.SIGKILL)
		}
	}()
	return r
}

func (r *routine) pid() int { return r.number }

func (r *routine) signal(_ int, sig syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed = r.killed || sig == syscall.SIGKILL
	r.end()
	return nil
}

func (r *routine) kill() error { return r.signal(r.number, syscall.SIGKILL) }

func (r *routine) waitGroup() (int, error) { return r.wait(), nil }

func (r *routine) wait() int {
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end()
	return r.code
}
