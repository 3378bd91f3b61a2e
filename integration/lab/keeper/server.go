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

// StartArgs says which process to start.
type StartArgs struct {
	// Args are the program's path and its arguments.
	Args []string
	// Env is added to the keeper's environment; later entries win.
	Env []string
	// Log is the file to which the output is appended.
	Log string
	// HostNetwork starts the process in the host's network namespace instead of the run's.
	HostNetwork bool
}

// SignalArgs says which process gets which signal.
type SignalArgs struct {
	PID    int
	Signal syscall.Signal
}

// Nothing is an empty argument or reply.
type Nothing struct{}

// server has the methods that a keeper's clients can call (net/rpc).
type server struct {
	run      Run
	home     []string // this process's original cgroups
	mounted  []string // mount points of this process's namespace alone
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

// merge returns an environment in which later definitions win. A process with duplicates would take
// the first.
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

// Wait waits until a process that Start started ends. The code is -1 after a signal.
func (s *server) Wait(pid int, code *int) (err error) {
	*code, err = s.children.wait(pid)
	return err
}

// Forward opens a port on the host's loopback to an address inside the run.
func (s *server) Forward(inside string, outside *string) (err error) {
	*outside, err = s.network.forward(inside)
	return err
}

// Release keeps the run alive when its owner ends.
func (s *server) Release(Nothing, *Nothing) error {
	s.release()
	return nil
}

// Stop takes the run down. The keeper ends soon after the reply.
func (s *server) Stop(Nothing, *Nothing) error {
	return s.teardown()
}

// teardown takes the run down, once. Later calls wait for the first.
func (s *server) teardown() error {
	s.stop.Do(func() {
		close(s.stopping)
		if s.stopErr = goHome(s.home); s.stopErr != nil {
			return
		}
		var logs error
		s.stopErr = teardown(context.Background(), s.run, os.Getpid(), func() error {
			logs = saveLogs(s.run) // after an error, the rest is still removed
			return unfurnish(s.mounted)
		})
		s.stopErr = errors.Join(s.stopErr, logs)
	})
	return s.stopErr
}

// logsVariable names the environment variable with the folder for the logs of ended runs. Unset or
// empty: the logs are removed.
const logsVariable = "POD_PACEMAKER_LAB_LOGS"

// saveLogs copies the logs to that folder.
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
