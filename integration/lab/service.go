package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab/keeper"
)

// termTimeout is how long a service may take to end after SIGTERM.
const termTimeout = 10 * time.Second

// ServiceSpec describes the process of a service.
type ServiceSpec struct {
	// Name is the name of the service and of its log file.
	Name string
	// Args are the program's absolute path and its arguments.
	Args []string
	// Env is added to the keeper's environment, "NAME=value".
	Env []string
	// HostNetwork runs the process in the host's network, where 127.0.0.1 is the same as for the
	// process that started the lab. Otherwise it runs in the node's network, where it reaches the
	// API server, the kubelet and the pods.
	HostNetwork bool
	// Ready, if set, returns nil when the service serves. Start and Restart call it repeatedly.
	Ready func(ctx context.Context) error
}

// Service is a process of a run that can be ended and started again. It ends with the run at the
// latest. It is safe for concurrent use, but Start, Stop, Kill and Restart of one service must not
// overlap.
type Service struct {
	spec   ServiceSpec
	keeper *keeper.Keeper

	mu      sync.Mutex
	current *process // the last started process; nil before the first
}

// process is one life of a service.
type process struct {
	pid    int
	exited chan struct{} // closed when the process or the keeper has ended
	code   int           // exit code, -1 after a signal; valid once exited
	err    error         // why the exit code is unknown; valid once exited
}

func newService(k *keeper.Keeper, spec ServiceSpec) *Service {
	return &Service{spec: spec, keeper: k}
}

// Name is the service's name.
func (s *Service) Name() string { return s.spec.Name }

// LogFile returns the path of the file with the output of all processes of the service. It is
// removed with the run.
func (s *Service) LogFile() string {
	return filepath.Join(s.keeper.Run.LogDir(), s.spec.Name+".log")
}

// PID returns the process ID, also after the process's end. It is 0 before the first start.
func (s *Service) PID() int {
	if p := s.process(); p != nil {
		return p.pid
	}
	return 0
}

func (s *Service) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Running reports whether the process lives.
func (s *Service) Running() bool {
	p := s.process()
	if p == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Start starts the process, and waits until Ready returns nil, if it is set. If the process ends
// before, the error shows its last lines.
func (s *Service) Start(ctx context.Context) error {
	if s.Running() {
		return fmt.Errorf("%s runs already", s.spec.Name)
	}
	pid, err := s.keeper.Start(ctx, keeper.StartArgs{
		Args: s.spec.Args, Env: s.spec.Env, Log: s.LogFile(), HostNetwork: s.spec.HostNetwork,
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", s.spec.Name, err)
	}
	p := &process{pid: pid, exited: make(chan struct{})}
	go func() {
		p.code, p.err = s.keeper.Wait(context.WithoutCancel(ctx), pid)
		close(p.exited)
	}()
	s.mu.Lock()
	s.current = p
	s.mu.Unlock()
	if s.spec.Ready == nil {
		return nil
	}
	return s.await(ctx, s.spec.Name+" to serve", s.spec.Ready)
}

// Signal sends a signal to the process. It returns no error if the process has ended.
func (s *Service) Signal(ctx context.Context, sig syscall.Signal) error {
	p := s.process()
	if p == nil {
		return fmt.Errorf("%s was not started", s.spec.Name)
	}
	if err := s.keeper.Signal(ctx, p.pid, sig); err != nil {
		return fmt.Errorf("sending %v to %s: %w", sig, s.spec.Name, err)
	}
	return nil
}

// Wait waits until the process ends, and returns its exit code, or -1 after a signal.
func (s *Service) Wait(ctx context.Context) (int, error) {
	p := s.process()
	if p == nil {
		return 0, fmt.Errorf("%s was not started", s.spec.Name)
	}
	select {
	case <-p.exited:
		return p.code, p.err
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting for %s to end: %w", s.spec.Name, ctx.Err())
	}
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (s *Service) Kill(ctx context.Context) error {
	if err := s.Signal(ctx, syscall.SIGKILL); err != nil {
		return err
	}
	_, err := s.Wait(ctx)
	return err
}

// Stop ends the process with SIGTERM, or with SIGKILL after ten seconds, and waits until it is
// gone.
func (s *Service) Stop(ctx context.Context) error {
	if err := s.Signal(ctx, syscall.SIGTERM); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, termTimeout)
	defer cancel()
	_, err := s.Wait(limited)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return s.Kill(ctx)
	}
	return err
}

// Restart ends the process like Stop and starts it again.
func (s *Service) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Tail returns the last lines of the service's output, at most that many, or "" if there are none.
func (s *Service) Tail(lines int) string {
	text, err := os.ReadFile(s.LogFile())
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
