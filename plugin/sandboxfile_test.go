package plugin

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A daemon that begins after the runtime was restarted knows what the one before it
// knew: the age of a shim alone would not tell.
func TestTheNextDaemonKnowsTheSandboxes(t *testing.T) {
	t.Parallel()
	root := procRoot(t.TempDir())
	root.process(t, 100, 1, 1, "/usr/bin/containerd-shim-runc-v2", "-id", "young")
	root.process(t, 200, 1, 1, "/opt/kata/bin/containerd-shim-kata-v2", "-id", "vm")
	young, vm := &api.PodSandbox{Id: "young", Pid: 100}, &api.PodSandbox{Id: "vm", Pid: 200}
	late, gone := &api.PodSandbox{Id: "late", Pid: 999}, &api.PodSandbox{Id: "gone"}
	file := filepath.Join(t.TempDir(), "sandboxes.json")

	before := newSandboxBook(string(root))
	require.NoError(t, before.recall(file), "there is none")
	before.connected(true, processOfNode{pid: 9, started: 1})
	before.made(young)
	before.made(vm)
	before.made(gone)
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, before.keep(ended, file, discard()))
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())

	next := newSandboxBook(string(root))
	require.NoError(t, next.recall(file))
	next.connected(true, processOfNode{pid: 10, started: 1000})
	next.exist([]*api.PodSandbox{young, vm, late})
	assert.Equal(t, sandboxFacts{}, next.of(young))
	assert.Equal(t, before.of(vm), next.of(vm))
	assert.NotEmpty(t, next.of(vm).strange)
	assert.True(t, next.of(late).old, "nobody has told of it")
	assert.True(t, next.of(gone).old)
	left, err := filepath.Glob(file + ".*")
	require.NoError(t, err)
	assert.Empty(t, left, "temporary files")
}

func TestAFileOfSandboxesThatIsNonsenseIsAnError(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sandboxes.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"sandboxes":[`), 0o600))
	b := newSandboxBook(t.TempDir())
	require.ErrorContains(t, b.recall(file), "facts about sandboxes")
	assert.True(t, b.of(&api.PodSandbox{Id: "s"}).old)
}

func TestWhatAKilledDaemonHadBegunToWriteIsRemoved(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sandboxes.json")
	for _, name := range []string{file, file + ".123", file + ".456"} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	require.NoError(t, removeUnfinished(file))
	left, err := filepath.Glob(file + "*")
	require.NoError(t, err)
	assert.Equal(t, []string{file}, left)
	require.NoError(t, removeUnfinished(file), "nothing to remove")
}

// The folder may be full, or not writable, for a while: what is known is kept once that is
// over, though nothing changes any more.
func TestTheSandboxesAreKeptOnceThatIsPossible(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		root := procRoot(t.TempDir())
		dir := filepath.Join(t.TempDir(), "run")
		require.NoError(t, os.WriteFile(dir, nil, 0o600)) // no folder
		file := filepath.Join(dir, "sandboxes.json")
		b := newSandboxBook(string(root))
		b.connected(true, processOfNode{pid: 9, started: 1})
		log, hook := logtest.NewNullLogger()
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.keep(ctx, file, log) }()
		b.made(&api.PodSandbox{Id: "s"})
		time.Sleep(time.Minute)
		require.Len(t, hook.AllEntries(), 1, "it is said once")
		require.NoError(t, os.Remove(dir))
		time.Sleep(2 * keepSandboxesEvery)
		next := newSandboxBook(string(root))
		require.NoError(t, next.recall(file))
		assert.False(t, next.of(&api.PodSandbox{Id: "s"}).old)
		assert.Len(t, hook.AllEntries(), 2, "and that it is over")
		end()
		require.NoError(t, <-done)
	})
}
