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
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

func TestTheDaemonInstallsItsHook(t *testing.T) {
	t.Parallel()
	log, entries := test.NewNullLogger()
	dir := t.TempDir()
	beside := filepath.Join(dir, HookName)
	o := Options{Programs: dir, GatePath: filepath.Join(dir, "opt", "bin", "hook"), Log: log}
	said := func() string {
		if e := entries.LastEntry(); e != nil {
			entries.Reset()
			return e.Message
		}
		return ""
	}
	require.NoError(t, o.installHook())
	assert.Empty(t, said(), "there is no hook beside the program, so an administrator installs it")
	assert.NoDirExists(t, filepath.Dir(o.GatePath))

	require.NoError(t, os.WriteFile(beside, []byte("one"), 0o600))
	require.NoError(t, o.installHook())
	assert.Equal(t, "installed the hook of the gate", said())
	info, err := os.Stat(o.GatePath)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode())
	require.NoError(t, o.installHook())
	assert.Empty(t, said(), "it is up to date")

	require.NoError(t, os.WriteFile(beside, nil, 0o600))
	require.ErrorContains(t, o.installHook(), "is empty")
	content, err := os.ReadFile(o.GatePath)
	require.NoError(t, err)
	assert.Equal(t, "one", string(content), "the hook that was there stays")

	o.GatePath = beside
	require.NoError(t, o.installHook())
	assert.Empty(t, said(), "the hook is used where it is")
	o.GatePath = ""
	require.NoError(t, o.installHook())
	assert.Empty(t, said(), "no gate")
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
				d := newDaemon(o, 2, file, &c, slowly())
				d.cluster.source.Begin()
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
