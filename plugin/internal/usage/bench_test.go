package usage

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// manyThreads makes a copy of the test binary a process with 300 threads that sleep.
const manyThreads = "POD_PACEMAKER_MANY_THREADS"

// haveManyThreads starts the threads, says so, and sleeps until its input ends.
func haveManyThreads() {
	ready := make(chan struct{})
	for range 300 {
		go func() {
			runtime.LockOSThread()
			ready <- struct{}{}
			select {}
		}()
	}
	for range 300 {
		<-ready
	}
	_, _ = os.Stdout.WriteString("ready\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// A Java program has as many threads. Starts are measured four times a second.
func BenchmarkThreadsWithoutACgroup(b *testing.B) {
	cmd := exec.CommandContext(b.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), manyThreads+"=1")
	stdin, err := cmd.StdinPipe()
	require.NoError(b, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(b, err)
	m := newMeter(Roots{Proc: "/proc", Cgroup: "/nowhere"})
	for b.Loop() {
		require.NotEmpty(b, m.inLine(Target{PIDs: []int{cmd.Process.Pid}}))
	}
	require.NoError(b, stdin.Close())
	require.NoError(b, cmd.Wait())
}
