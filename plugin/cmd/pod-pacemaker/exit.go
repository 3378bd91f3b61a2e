package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The exit codes.
const (
	exitOK = 0
	// exitFailure: it was asked rightly and could not be done.
	exitFailure = 1
	// exitInvalid: the command line or a configuration is wrong; to try again
	// does not mend it. It is EX_USAGE of sysexits(3), since the Go runtime ends a program
	// that panics, or that a watchdog aborts, with 2: the systemd unit starts that one again.
	exitInvalid = 64
)

// failure ends the program with a code, after telling why in lines.
type failure struct {
	code  int
	lines []string
	err   error
}

func (f *failure) Error() string { return strings.Join(f.lines, "\n") }

func (f *failure) Unwrap() error { return f.err }

// invalid says that a configuration is wrong, each fault on a line of its own.
// prefix names where it comes from, and may be empty.
func invalid(prefix string, err error) error {
	f := &failure{code: exitInvalid, err: err}
	faults := fieldErrors(err)
	if len(faults) == 0 {
		faults = []error{err}
	}
	for _, e := range faults {
		line := oneLine(e.Error())
		if prefix != "" && !strings.Contains(line, prefix) {
			line = prefix + ": " + line
		}
		f.lines = append(f.lines, line)
	}
	return f
}

// fieldErrors returns every field's error in err.
func fieldErrors(err error) (all []error) {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case *field.Error:
		return []error{e}
	case interface{ Unwrap() error }:
		return fieldErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, fieldErrors(one)...)
		}
	}
	return all
}

// oneLine folds what would break a line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// does makes what a command does from a function, whose errors are failures
// where they do not say otherwise.
func does(what func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := what(cmd, args)
		if err == nil {
			return nil
		}
		if failed := (*failure)(nil); errors.As(err, &failed) {
			return err
		}
		if wrong := (*wrongUsage)(nil); errors.As(err, &wrong) {
			return err
		}
		return &failure{code: exitFailure, lines: []string{oneLine(err.Error())}, err: err}
	}
}

// wrongUsage is about the command line, for the one who typed it.
type wrongUsage struct{ why string }

func (w *wrongUsage) Error() string { return w.why }
