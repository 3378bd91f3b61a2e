package main

import (
	"errors"
	"fmt"
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

// wrongUsage is about the command line, for the one who typed it.
type wrongUsage struct{ why string }

func (w *wrongUsage) Error() string { return w.why }

// invalid is about a configuration.
type invalid struct {
	source string  // where the configuration comes from; may be empty
	faults []error // each is a line of its own
}

// invalidIn says what is wrong with a configuration: every field's error in err, else err itself.
func invalidIn(source string, err error) error {
	faults := fieldErrors(err)
	if len(faults) == 0 {
		faults = []error{err}
	}
	return &invalid{source, faults}
}

func (i *invalid) Error() string { return strings.Join(i.lines(), "\n") }

func (i *invalid) Unwrap() []error { return i.faults }

func (i *invalid) lines() (lines []string) {
	for _, fault := range i.faults {
		line := oneLine(fault.Error())
		if !strings.Contains(line, i.source) {
			line = i.source + ": " + line
		}
		lines = append(lines, line)
	}
	return lines
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

// report tells people about the error that the command ended with, and gives the exit code.
func (p *program) report(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	if wrong, ok := errors.AsType[*wrongUsage](err); ok {
		fmt.Fprintf(p.stderr, "pod-pacemaker: %v\n'%s --help' shows how to use it.\n", wrong, cmd.CommandPath())
		return exitInvalid
	}
	if bad, ok := errors.AsType[*invalid](err); ok {
		for _, line := range bad.lines() {
			fmt.Fprintf(p.stderr, "pod-pacemaker: %s\n", line)
		}
		return exitInvalid
	}
	fmt.Fprintf(p.stderr, "pod-pacemaker: %s\n", oneLine(err.Error()))
	return exitFailure
}
