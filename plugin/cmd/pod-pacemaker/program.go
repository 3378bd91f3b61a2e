package main

import (
	"context"
	"io"
	"os"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
	"github.com/pod-pacemaker/pod-pacemaker/plugin"
)

// daemon is the part of plugin.Daemon that `run` needs.
type daemon interface {
	Run(ctx context.Context) error
	Ready() error
	Alive(ctx context.Context) error
}

// program is one call of pod-pacemaker with its surroundings.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	newDaemon      func(plugin.Options) (daemon, error)
	// onLogger is called with the logger before the daemon is made.
	onLogger     func(*logrus.Logger)
	firstProcess string // the file with the command line of process 1
	inPod        bool   // process 1 is a daemon
	accepted     bool   // the command line is right
}

// run executes the command until it is done or ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{
		stdin: stdin, stdout: stdout, stderr: stderr, env: os.Getenv,
		newDaemon: realDaemon, onLogger: logLibraries, firstProcess: "/proc/1/cmdline",
	}
	return p.run(ctx, args)
}

func realDaemon(o plugin.Options) (daemon, error) { return plugin.New(o) }

func (p *program) run(ctx context.Context, args []string) int {
	p.stdout, p.stderr = plain.Writer{W: p.stdout}, plain.Writer{W: p.stderr}
	root := p.rootCommand()
	root.SetArgs(p.completed(args))
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return p.report(cmd, err)
}
