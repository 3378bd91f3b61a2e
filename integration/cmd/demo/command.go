package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo"
)

// The exit codes.
const (
	exitOK = iota
	exitFailure
	exitUsage
)

const long = `Demo shows what pod-pacemaker does, on this machine, in about three minutes, twice as many on a busy one.

It needs root. It builds a containerd (once, into a cache) and starts it in a folder,
a cgroup and a network of its own. Then a herd of pods starts there, each burning CPU
until it is ready: first as fast as the node takes them, then paced by the real daemon.

It ends with a table and a report with both timelines drawn, an HTML file that
needs nothing else, and the timelines alone as an SVG file. Everything it started is gone afterwards, also after Ctrl-C.

Exit codes: 0 shown, 1 failed or ended early, 2 wrong flags.`

// run is the program. It returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := command(stdout)
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return report(stderr, cmd.ExecuteContext(ctx))
}

// report prints an error, if there is one, and returns the exit code.
func report(stderr io.Writer, err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "demo: %v (demo --help says more)\n", err)
		return exitUsage
	case errors.Is(err, demo.ErrOptions):
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return exitFailure
	}
}

// usageError is an error in the command line.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

func command(stdout io.Writer) *cobra.Command {
	o := demo.Options{Out: stdout, Terminal: isTerminal(stdout)}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a herd of pods start, unpaced and paced",
		Long:  long,
		Example: "  make demo                             # builds the two programs first\n" +
			"  demo --cpus 4 --report /tmp/herd.html # a herd twice as large",
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("it takes no arguments, only flags: %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return demo.Run(cmd.Context(), o) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.CPUs, "cpus", 2, "`number` of CPUs that the pods share; the herd grows with it")
	flags.StringVar(&o.Report, "report", "", "`file` for the report (default pod-pacemaker-demo.html beside bin/); the timelines alone are beside it as .svg")
	flags.StringVar(&o.Bin, "bin", "", "`folder` of pod-pacemaker and pacemaker-gate (default the repository's bin/)")
	return cmd
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
