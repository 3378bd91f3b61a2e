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

func TestTheUnitRestartsADaemonThatPanickedOrHung(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../../deploy/systemd/pod-pacemaker.service")
	require.NoError(t, err)
	assert.Contains(t, string(unit), fmt.Sprintf("\nRestartPreventExitStatus=%d\n", exitInvalid))
	assert.NotEqual(t, goAborts, exitInvalid)
}
