package main

import (
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBurnsAsMuchAsAsked(t *testing.T) {
	before, err := cpuTime()
	require.NoError(t, err)
	budget := before + 50*time.Millisecond
	require.NoError(t, burnCPU(budget))
	after, err := cpuTime()
	require.NoError(t, err)
	require.GreaterOrEqual(t, after, budget)
}

func TestEachAnswerTakesItsOwnWork(t *testing.T) {
	before, err := cpuTime()
	require.NoError(t, err)
	const answers, each = 4, 20 * time.Millisecond
	ended := make(chan error, answers)
	for range answers {
		go func() { ended <- work(each) }()
	}
	for range answers {
		require.NoError(t, <-ended)
	}
	after, err := cpuTime()
	require.NoError(t, err)
	require.GreaterOrEqual(t, after-before, answers*each, "work of one answer counts for no other")
}

func TestEnvironmentSetsFlagsAndTheCommandLineWins(t *testing.T) {
	t.Setenv("HERD_CPU_SECONDS", "2.5")
	t.Setenv("HERD_PORT", "9000")
	flags := flag.NewFlagSet("herd", flag.ContinueOnError)
	burn := flags.Float64("cpu-seconds", 4, "")
	port := flags.Int("port", 8080, "")
	require.NoError(t, fromEnvironment(flags))
	require.NoError(t, flags.Parse([]string{"--port", "1"}))
	require.InDelta(t, 2.5, *burn, 0)
	require.Equal(t, 1, *port)
}

func TestBadEnvironmentIsAnError(t *testing.T) {
	t.Setenv("HERD_PORT", "many")
	flags := flag.NewFlagSet("herd", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Int("port", 8080, "")
	require.ErrorContains(t, fromEnvironment(flags), "HERD_PORT")
}

func TestWaitsForAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "released")
	ended := make(chan error, 1)
	go func() { ended <- run([]string{"--cpu-seconds", "0", "--until", file, "--done"}) }()
	select {
	case err := <-ended:
		require.Fail(t, "ready without the file", "%v", err)
	case <-time.After(300 * time.Millisecond):
	}
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, <-ended)
}

func TestWaitsForAnAddress(t *testing.T) {
	// An address of this process alone, so that no other process takes the port meanwhile.
	own := net.IPv4(127, 83, byte(os.Getpid()>>8), byte(os.Getpid()))
	first, err := net.Listen("tcp", net.JoinHostPort(own.String(), "0"))
	require.NoError(t, err)
	address := first.Addr().String()
	require.NoError(t, first.Close())
	ended := make(chan error, 1)
	go func() { ended <- run([]string{"--cpu-seconds", "0", "--wait-for", address, "--done"}) }()
	select {
	case err := <-ended:
		require.FailNow(t, "ready without the address that it waits for", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	there, err := net.Listen("tcp", address)
	require.NoError(t, err)
	defer there.Close()
	require.NoError(t, <-ended)
}

func TestAJobEndsWhenReady(t *testing.T) {
	require.NoError(t, run([]string{"--cpu-seconds", "0", "--done"}))
}

func TestMarksThatItIsReady(t *testing.T) {
	file := filepath.Join(t.TempDir(), "marked")
	require.NoError(t, run([]string{"--cpu-seconds", "0", "--marks", file, "--done"}))
	require.FileExists(t, file)
	require.NoError(t, run([]string{"--cpu-seconds", "0", "--fails-without", file, "--done"}))
}
