package plugin

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

func TestTheDaemonKeepsItsHookInstalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		log, entries := test.NewNullLogger()
		o := goodOptions()
		o.Log, o.Programs, o.GatePath = log, dir, filepath.Join(dir, "bin", waiting.HookName)
		program := func(content string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, waiting.HookName), []byte(content), 0o600))
		}
		d := newDaemon(o, cores.Of(2), crd.Documents{}, nil, slowly())
		assert.False(t, installHook(d.waiting.Gate, o, false))
		assert.Empty(t, entries.AllEntries(), "there is no hook to install")
		program("")

		o.RunDir = dir
		note, long := filepath.Join(dir, wire.NoteFolder, "of-a-deleted-pod"), time.Now().Add(-time.Hour)
		require.NoError(t, os.MkdirAll(filepath.Dir(note), 0o700))
		require.NoError(t, os.WriteFile(note, nil, 0o600))
		require.NoError(t, os.Chtimes(note, long, long))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = keepHook(ctx, d.waiting.Gate, o) }()
		time.Sleep(10 * hookEvery)
		synctest.Wait()
		assert.Len(t, entries.AllEntries(), 1, "it fails for the same reason")
		assert.Contains(t, entries.LastEntry().Message, "cannot install the hook of the gate: pods are refused instead")
		assert.Contains(t, d.waiting.Gate.Off(), "the hook cannot be installed")
		assert.NoFileExists(t, note)
		program("hook")
		for range 2 {
			time.Sleep(hookEvery)
			synctest.Wait()
			assert.Equal(t, "installed the hook of the gate", entries.LastEntry().Message)
			assert.FileExists(t, o.GatePath)
			assert.NotContains(t, d.waiting.Gate.Off(), "cannot be installed")
			require.NoError(t, os.Remove(o.GatePath)) // by another program
		}
		assert.Len(t, entries.AllEntries(), 3)
	})
}

func TestTheDaemonPacesBeforeItHasInstalledItsHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, waiting.HookName)
	require.NoError(t, unix.Mkfifo(program, 0o600)) // whoever reads it waits, as for a slow disk
	n := newNode(t, noLimit, with(func(o *Options) { o.Programs, o.GatePath = dir, filepath.Join(dir, "bin", waiting.HookName) }))
	assert.Equal(t, "the hook is being installed", n.d.waiting.Gate.Off())
	require.NoError(t, os.WriteFile(program, []byte("hook"), 0o600))
	n.eventually("it is installed", func() bool { return n.d.waiting.Gate.Off() != "the hook is being installed" })
	assert.FileExists(t, n.options.GatePath)
}

// With the limits of a file, but without the policies on disk, the hooks of an earlier daemon would be let go before the
// API server sends the policies that hold their pods.
func TestTheGateWaitsAMomentForThePolicies(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"not known": false, "known": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log, entries := test.NewNullLogger()
				o := goodOptions()
				o.Log, o.StateDir = log, t.TempDir()
				if known {
					none := `{"version": 2, "node": "` + o.NodeName + `", "objects": []}`
					require.NoError(t, os.WriteFile(o.policiesPath(), []byte(none), 0o600))
				}
				file := crd.Documents{Config: &v1alpha1.PacemakerConfig{}}
				c := clients{kube: kubetest.Of(kubefake.NewClientset()), dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())}
				d := newDaemon(o, cores.Of(2), file, &c, slowly())
				d.source.Begin()
				entries.Reset()
				answering := make(chan error)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { answering <- d.answerHooks(ctx) }()
				time.Sleep(policiesWithin - time.Nanosecond)
				synctest.Wait()
				assert.Empty(t, entries.AllEntries())
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if known {
					assert.Empty(t, entries.AllEntries())
				} else if assert.Len(t, entries.AllEntries(), 1) {
					assert.Contains(t, entries.LastEntry().Message, "until it does, they hold no pod in the gate")
				}
				cancel()
				require.NoError(t, <-answering)
			})
		})
	}
}
