package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goAborts is the exit code that the Go runtime gives a program that panics. It is also the code after the signal
// with which systemd's watchdog aborts a program.
const goAborts = 2

// unit returns the shipped unit.
func unit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/systemd/pod-pacemaker.service")
	require.NoError(t, err)
	return string(text)
}

func TestTheUnitRestartsADaemonThatPanickedOrHung(t *testing.T) {
	t.Parallel()
	assert.Contains(t, unit(t), fmt.Sprintf("\nRestartPreventExitStatus=%d\n", exitInvalid))
	assert.NotEqual(t, goAborts, exitInvalid)
}

// systemd resolves a specifier in a unit when it loads the unit: on a node's first boot, before the host has its name.
func TestTheUnitLeavesTheNodesNameToTheDaemon(t *testing.T) {
	t.Parallel()
	assert.NotRegexp(t, `(?m)^[^#].*(NODE_NAME|--node-name)`, unit(t))
}
