package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// StartArgs says what process to start.
type StartArgs struct {
	// Args are the program's path and its arguments.
	Args []string
	// Env is added to the keeper's environment; later entries win.
	Env []string
	// Log is the file its output is appended to.
	Log string
	// HostNetwork starts it in the host's network namespace, not in the run's.
	HostNetwork bool
}

// SignalArgs says which process gets which signal.
type SignalArgs struct {
	PID    int
	Signal syscall.Signal
}

// Nothing is an empty argument or reply.
type Nothing struct{}

// server is what a keeper's clients can call (net/rpc).
type server struct {
	run      Run
	home     []string // the cgroups this process was in at first
	mounted  []string // where this process's namespace differs from the host's
	children *children
	network  *namespace
	release  func()

	stopping chan struct{} // closed when teardown begins
	stop     sync.Once
	stopErr  error // valid once stop is done
}

// Start starts a process and replies with its ID.
func (s *server) Start(args StartArgs, pid *int) (err error) {
	env := merge(os.Environ(), args.Env)
	start := func() { *pid, err = s.children.start(args.Args, env, args.Log) }
	if args.HostNetwork {
		start()
		return err
	}
	s.network.do(start)
	return err
}

// merge is an environment in which later definitions win; a process that was
// given both would take the first.
func merge(environment, later []string) []string {
	redefined := map[string]bool{}
	for _, definition := range later {
		name, _, _ := strings.Cut(definition, "=")
		redefined[name] = true
	}
	var merged []string
	for _, definition := range environment {
		if name, _, _ := strings.Cut(definition, "="); !redefined[name] {
			merged = append(merged, definition)
		}
	}
	return append(merged, later...)
}

// Signal signals a process that Start started.
func (s *server) Signal(args SignalArgs, _ *Nothing) error {
	return s.children.signal(args.PID, args.Signal)
}

// Wait blocks until a process that Start started ends; -1 for a signal.
func (s *server) Wait(pid int, code *int) (err error) {
	*code, err = s.children.wait(pid)
	return err
}

// Forward opens a port on the host's loopback to an address inside the run.
func (s *server) Forward(inside string, outside *string) (err error) {
	*outside, err = s.network.forward(inside)
	return err
}

// Release lets the run live on when its owner ends.
func (s *server) Release(Nothing, *Nothing) error {
	s.release()
	return nil
}

// Stop takes the run down. The keeper ends soon after the reply.
func (s *server) Stop(Nothing, *Nothing) error {
	return s.teardown()
}

// teardown takes the run down, once; later calls wait for the first.
func (s *server) teardown() error {
	s.stop.Do(func() {
		close(s.stopping)
		if s.stopErr = goHome(s.home); s.stopErr != nil {
			return
		}
		var logs error
		s.stopErr = teardown(context.Background(), s.run, os.Getpid(), func() error {
			logs = saveLogs(s.run) // no reason to leave the rest behind
			return unfurnish(s.mounted)
		})
		s.stopErr = errors.Join(s.stopErr, logs)
	})
	return s.stopErr
}

// logsVariable names the folder in which the logs of ended runs are kept; unset
// or empty keeps none.
const logsVariable = "POD_PACEMAKER_LAB_LOGS"

// saveLogs copies the logs to where they are kept, if anywhere.
func saveLogs(run Run) error {
	keep := os.Getenv(logsVariable)
	if keep == "" {
		return nil
	}
	if err := os.CopyFS(filepath.Join(keep, run.ID), os.DirFS(run.LogDir())); err != nil {
		return fmt.Errorf("keeping the logs of run %s: %w", run.ID, err)
	}
	return nil
}
