package keeper

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// programName is the keeper's argv[0]. This package's init recognizes by it that the program was
// started as a keeper.
const programName = "pod-pacemaker-lab-keeper"

// File descriptors that a keeper inherits.
const (
	lifelineFD = 3 + iota // ends when the owner ends
	reportFD              // "" if the keeper is ready, else the error
	aliveFD               // holds the lock on the run
)

// parting is how long a keeper waits until its clients have read the last reply.
const parting = 2 * time.Second

func init() {
	if len(os.Args) != 2 || os.Args[0] != programName {
		return
	}
	if err := keep(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// keep runs a keeper from start to end.
func keep(dir string) error {
	for _, fd := range []int{lifelineFD, reportFD, aliveFD} {
		syscall.CloseOnExec(fd) // a child must not keep the lock
	}
	report := os.NewFile(reportFD, "report")
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)

	run, err := runAt(dir)
	if err != nil {
		return errors.Join(err, tell(report, err))
	}
	s, listener, err := setUp(run)
	if err != nil {
		return errors.Join(err, tell(report, err), s.teardown())
	}
	released := make(chan struct{})
	s.release = sync.OnceFunc(func() { close(released) })
	clients := newClients()
	go clients.serve(listener, s)
	if err := tell(report, nil); err != nil {
		return errors.Join(err, s.teardown())
	}
	select {
	case <-terminate:
	case <-ownerGone(released):
	case <-s.stopping:
	}
	err = s.teardown()
	clients.awaitParting()
	return err
}

// setUp creates the run's namespaces and cgroups before any process starts. After an error the
// server can still be torn down.
func setUp(run Run) (*server, net.Listener, error) {
	s := &server{run: run, stopping: make(chan struct{})}
	var err error
	if s.home, err = homeCgroups(); err != nil {
		return s, nil, err
	}
	if err := makeCgroups(run.Cgroup); err != nil {
		return s, nil, err
	}
	if s.mounted, err = furnish(run.Dir + "/host"); err != nil {
		return s, nil, err
	}
	// Orphans are reaped until the very end.
	if s.children, _, err = newChildren(); err != nil {
		return s, nil, err
	}
	if s.network, err = newNamespace(); err != nil {
		return s, nil, err
	}
	listener, err := net.Listen("unix", run.socket())
	return s, listener, err
}

// tell reports to the owner that the keeper is ready, or why it is not.
func tell(report *os.File, problem error) error {
	text := ""
	if problem != nil {
		text = problem.Error()
	}
	_, err := io.WriteString(report, text)
	return errors.Join(err, report.Close())
}

// ownerGone returns a channel that closes when the owner ends, unless the run was released before.
func ownerGone(released <-chan struct{}) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		lifeline := os.NewFile(lifelineFD, "lifeline")
		// Nothing is ever written, so this returns when the other end closes.
		_, _ = io.Copy(io.Discard, lifeline)
		select {
		case <-released:
		default:
			close(gone)
		}
	}()
	return gone
}

// clients counts the open connections.
type clients struct {
	open sync.WaitGroup
}

func newClients() *clients { return &clients{} }

func (c *clients) serve(listener net.Listener, s *server) {
	r := rpc.NewServer()
	if err := r.RegisterName("Keeper", s); err != nil {
		panic(err) // the server's methods do not fit net/rpc: a bug in this code
	}
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		c.open.Go(func() { r.ServeConn(conn) })
	}
}

// awaitParting waits for a short time until all clients have hung up.
func (c *clients) awaitParting() {
	left := make(chan struct{})
	go func() {
		c.open.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-time.After(parting):
	}
}
