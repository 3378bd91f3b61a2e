package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no verb":      {},
		"unknown verb": {"upp"},
		"argument":     {"down", "everything"},
		"unknown flag": {"up", "--nodes", "3"},
		"not a label":  {"up", "--label", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, problems bytes.Buffer
			require.Equal(t, exitUsage, run(t.Context(), args, &out, &problems))
			require.Contains(t, problems.String(), "lab --help says more")
			require.Empty(t, out.String())
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var out, problems bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"--help"}, &out, &problems))
	for _, verb := range []string{"build", "up", "down", "status", "sweep"} {
		require.Contains(t, out.String(), "\n  "+verb+" ")
	}
	require.Empty(t, problems.String())
}

func TestStatusWithNothingUp(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out, problems bytes.Buffer
	require.Equal(t, exitNothing, run(t.Context(), []string{"status"}, &out, &problems))
	require.Equal(t, "lab: no cluster is up\n", problems.String())
	require.Empty(t, out.String())
}

func TestDownWithNothingUp(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out, problems bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"down"}, &out, &problems))
	require.Equal(t, "no cluster is up\n", problems.String())
}
