package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// booted is when the nodes of bootedProc were booted.
var booted = time.Unix(1_700_000_000, 0)

// bootedProc is a /proc of a node that was booted, of which a test says what runs there.
type bootedProc struct {
	t   *testing.T
	dir string
}

func newBootedProc(t *testing.T) bootedProc {
	p := bootedProc{t, t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "stat"), fmt.Appendf(nil, "cpu  1 2 3\nbtime %d\n", booted.Unix()), 0o600))
	return p
}

// runs has a process run since so long after the boot; numbers are what it has in the
// namespaces of processes that it is in.
func (p bootedProc) runs(pid, parent int, comm string, since time.Duration, numbers string) {
	p.t.Helper()
	ticks := since / (time.Second / 100)
	for file, content := range map[string]string{
		"comm":   comm + "\n",
		"stat":   fmt.Sprintf("%d (%s) S %d", pid, comm, parent) + strings.Repeat(" 0", 17) + fmt.Sprintf(" %d", ticks) + strings.Repeat(" 0", 30) + "\n",
		"status": fmt.Sprintf("Name:\t%s\nPid:\t%d\nNSpid:\t%s\n", comm, pid, numbers),
	} {
		path := filepath.Join(p.dir, fmt.Sprint(pid), file)
		require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(p.t, os.WriteFile(path, []byte(content), 0o600))
	}
}

// ends takes a process away.
func (p bootedProc) ends(pid int) {
	p.t.Helper()
	require.NoError(p.t, os.RemoveAll(filepath.Join(p.dir, fmt.Sprint(pid))))
}

func (p bootedProc) kubelet(names ...string) *kubeletProcess {
	return newKubeletProcess(Options{ProcRoot: p.dir, KubeletProcess: names, Log: discard()})
}

func TestTheStartOfKubeletIsThatOfItsProcess(t *testing.T) {
	t.Parallel()
	proc := newBootedProc(t)
	proc.runs(1, 0, "systemd", 0, "1")
	proc.runs(70, 1, "kubelet", 1500*time.Millisecond, "70")
	k := proc.kubelet("kubelet")
	now := booted.Add(time.Hour)
	assert.Equal(t, booted.Add(1500*time.Millisecond), k.now(now).started)

	proc.runs(90, 1, "kubelet", time.Hour, "90 1")
	proc.runs(91, 70, "kubelet", time.Hour, "91")
	assert.Equal(t, booted.Add(1500*time.Millisecond), k.now(now).started, "nothing changed that kubelet is")
	assert.Equal(t, booted.Add(1500*time.Millisecond), proc.kubelet("kubelet").now(now).started,
		"90 is a process of a pod, 91 what kubelet is about to make another program of")
	assert.Equal(t, booted, proc.kubelet("systemd").now(now).started)

	proc.ends(70)
	proc.ends(91)
	assert.Equal(t, booted.Add(1500*time.Millisecond), k.now(now).started, "it is away: nothing that it says is new")
	proc.runs(71, 1, "kubelet", 2*time.Hour, "71")
	assert.Equal(t, booted.Add(2*time.Hour), k.now(now).started, "it was restarted")
	proc.runs(71, 1, "kubelet", 3*time.Hour, "71")
	assert.Equal(t, booted.Add(3*time.Hour), k.now(now).started, "another process has its number")
}

func TestWhatIsKnownOfKubeletIsThereWhileProcIsSlow(t *testing.T) {
	t.Parallel()
	proc := newBootedProc(t)
	proc.runs(70, 1, "kubelet", time.Minute, "70")
	k := proc.kubelet("kubelet")
	known := k.now(booted)
	slow := filepath.Join(proc.dir, "70", "stat")
	require.NoError(t, os.Remove(slow))
	require.NoError(t, syscall.Mkfifo(slow, 0o600))
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		k.now(booted) // waits until somebody writes
	}()
	writer, err := os.OpenFile(slow, os.O_WRONLY, 0) // once it reads
	require.NoError(t, err)
	assert.Equal(t, known, k.known())
	proc.ends(70)
	require.NoError(t, writer.Close())
	<-looked
}

func TestOfSeveralKubeletsTheYoungestCounts(t *testing.T) {
	t.Parallel()
	proc := newBootedProc(t)
	proc.runs(10, 1, "kubelet", time.Minute, "10")
	proc.runs(11, 1, "kubelet", time.Second, "11")
	k := proc.kubelet("kubelet")
	assert.Equal(t, booted.Add(time.Minute), k.now(booted).started)
	proc.ends(11)
	proc.runs(12, 1, "kubelet", time.Hour, "12")
	assert.Equal(t, booted.Add(time.Hour), k.now(booted).started)
}

func TestAKubeletThatIsInNoProcessOfItsOwnIsLookedForSeldom(t *testing.T) {
	t.Parallel()
	proc := newBootedProc(t)
	log, hook := logtest.NewNullLogger()
	k := newKubeletProcess(Options{ProcRoot: proc.dir, KubeletProcess: []string{"kubelet"}, Log: log})
	now := booted
	require.Zero(t, k.now(now).started)
	require.Zero(t, k.now(now.Add(kubeletEvery)).started)
	require.Len(t, hook.AllEntries(), 1, "it is said once")
	assert.Contains(t, hook.LastEntry().Message, "--kubelet-process")

	proc.runs(70, 1, "kubelet", time.Second, "70")
	require.Zero(t, k.now(now.Add(2*kubeletEvery-time.Second)).started)
	assert.Equal(t, booted.Add(time.Second), k.now(now.Add(2*kubeletEvery)).started)
}

func TestTheNameOfKubeletsProcessIsTheAdministratorsChoice(t *testing.T) {
	t.Parallel()
	proc := newBootedProc(t)
	proc.runs(70, 1, "a-distribution-", time.Second, "70")
	assert.Equal(t, booted.Add(time.Second), proc.kubelet("a-distribution-with-kubelet").now(booted).started, "/proc tells 15 letters")
	proc.runs(71, 1, "k3s-server", time.Minute, "71")
	assert.Equal(t, booted.Add(time.Minute), proc.kubelet("kubelet", "k3s-server").now(booted).started)
	assert.Zero(t, proc.kubelet().now(booted).started, "it is not to be looked for")
	assert.Zero(t, newKubeletProcess(Options{ProcRoot: "/nowhere", KubeletProcess: []string{"kubelet"}, Log: discard()}).now(booted).started)
}

func TestKubeletWorksOnceItStartsPods(t *testing.T) {
	t.Parallel()
	proc := newBootedProc(t)
	proc.runs(70, 1, "kubelet", time.Minute, "70")
	k := proc.kubelet("kubelet")
	works := func(now time.Duration) time.Duration {
		at := k.now(booted.Add(now)).works
		if at.IsZero() {
			return 0
		}
		return at.Sub(booted)
	}
	asks := func(at time.Duration) {
		k.asks(booted.Add(at))
		k.follow(booted.Add(at))
	}
	assert.Zero(t, works(time.Hour), "it asked for nothing yet")
	asks(59 * time.Second)
	assert.Zero(t, works(time.Hour), "that was the kubelet before")
	asks(70 * time.Second)
	asks(80 * time.Second)
	assert.Equal(t, 70*time.Second, works(time.Hour))

	proc.runs(70, 1, "kubelet", 100*time.Second, "70")
	assert.Zero(t, works(time.Hour), "it was restarted")
	proc.ends(70)
	proc.runs(71, 1, "kubelet", 200*time.Second, "71")
	asks(220 * time.Second)
	assert.Equal(t, 220*time.Second, works(time.Hour), "it was restarted, and nobody looked meanwhile")
}
