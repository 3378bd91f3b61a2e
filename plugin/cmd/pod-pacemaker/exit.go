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
	exitOK      = 0
	exitFailure = 1
	// exitInvalid means that the command line or a configuration is wrong, so a retry does not help.
	// It is EX_USAGE of sysexits(3) and not 2, because a Go program that panics, or that a watchdog
	// aborts, exits with 2, and the systemd unit restarts such a daemon.
	exitInvalid = 64
)

// invalid is the error of wrong flags or a wrong configuration: a line for each fault. Its exit code is exitInvalid.
type invalid []string

func (i invalid) Error() string { return strings.Join(i, "\n") }

// invalidUsage returns the error of one wrong flag.
func invalidUsage(format string, args ...any) error { return invalid{fmt.Sprintf(format, args...)} }

// invalidIn returns an invalid error with every field error in err, or with err itself if it has none. Each line names
// the source of the configuration.
func invalidIn(source string, err error) error {
	var lines invalid
	for _, text := range faultsOf(err) {
		if !strings.Contains(text, source) {
			text = source + ": " + text
		}
		lines = append(lines, text)
	}
	return lines
}

// faultsOf returns the texts of all *field.Errors in the tree of err, or that of err if it has none. Nil has no faults.
func faultsOf(err error) (faults []string) {
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) { //nolint:errorlint // it walks the tree itself
		case *field.Error:
			faults = append(faults, e.Error())
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, one := range e.Unwrap() {
				walk(one)
			}
		}
	}
	if walk(err); err != nil && len(faults) == 0 {
		faults = []string{err.Error()}
	}
	return faults
}

// report writes the error that a command ended with to standard error, and returns the exit code.
func (p *program) report(cmd *cobra.Command, err error) int {
	bad, isInvalid := errors.AsType[invalid](err)
	switch {
	case err == nil:
		return exitOK
	case isInvalid:
		for _, fault := range bad {
			fmt.Fprintf(p.stderr, "pod-pacemaker: %s\n", line(fault))
		}
		return exitInvalid
	case !p.accepted:
		text, similar, found := strings.Cut(err.Error(), "\n\nDid you mean this?\n") // of cobra
		if found {
			text += "; did you mean " + strings.Join(strings.Fields(similar), " or ") + "?"
		}
		fmt.Fprintf(p.stderr, "pod-pacemaker: %s\n'%s --help' shows how to use it.\n", line(text), cmd.CommandPath())
		return exitInvalid
	}
	fmt.Fprintf(p.stderr, "pod-pacemaker: %s\n", line(err.Error()))
	return exitFailure
}
