package crd

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// onDisk writes what an earlier daemon was told, and returns the file's path.
func onDisk(t *testing.T, said ...*v1alpha1.PacemakerConfig) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, keeper(path).save(said))
	return path
}

// writeFile is a SourceOptions.Write that no power cut interrupts.
func writeFile(path string, content []byte) error { return os.WriteFile(path, content, 0o600) }

// keeper keeps configs in the file at path.
func keeper(path string) *follower[v1alpha1.PacemakerConfig] {
	log, _ := logtest.NewNullLogger()
	o := SourceOptions{NodeName: nodeName, Log: log, Write: writeFile}
	return newFollower(configKind, o, path, &nodeFollower{SourceOptions: o, changed: func() {}}, nil)
}

// disk is a config that an earlier daemon was told.
func disk(name string, generation int64, value int32) *v1alpha1.PacemakerConfig {
	c := config(name, 0, nil)
	c.UID, c.Generation = types.UID("uid-of-"+name), generation
	c.Spec.ThrottleConfig.MaxConcurrent = &v1alpha1.MaxConcurrent{Value: &value}
	return c
}

// refuse lets the API server answer lists with err, until relent is called.
func (w *world) refuse(err error) (relent func()) {
	refused := true
	w.configs.PrependReactor("list", "*", func(clienttest.Action) (bool, runtime.Object, error) {
		return refused, nil, err
	})
	return func() { refused = false }
}

// isReady reports whether the node's config is known and in force.
func (w *world) isReady() bool { return closed(w.source.Ready()) }

func TestSourceRemembersUntilTheAPIServerAnswers(t *testing.T) {
	path := onDisk(t, disk("a", 3, 5))
	inWorld(t, nil, func(w *world) {
		relent := w.refuse(errors.New("the API server is away"))
		w.source.configs.path = path
		w.run()
		assert.True(t, w.isReady())
		w.hour()
		w.inForce("a", OriginDisk, 3)
		assert.EqualValues(t, 5, *w.source.current.Load().Spec.ThrottleConfig.MaxConcurrent.Value)

		relent()
		b := testObject("b", 1, 2, nil)
		b.SetLabels(map[string]string{"not": "kept"})
		w.put(b)
		w.hour()
		w.inForce("b", OriginAPI, 1)
		kept, err := keeper(path).load()
		require.NoError(t, err)
		require.Len(t, kept, 1)
		assert.Equal(t, metav1.ObjectMeta{Name: "b", UID: "uid-of-b", Generation: 1}, kept[0].ObjectMeta)

		w.delete("b")
		w.inForce("", OriginNone, 0)
		kept, err = keeper(path).load()
		require.NoError(t, err)
		assert.Empty(t, kept, "the absence of a config is kept, too")
	})
}

func TestSourceRemembersThatThereWasNone(t *testing.T) {
	path := onDisk(t)
	inWorld(t, config("from-file", 0, nil), func(w *world) {
		w.refuse(errors.New("the API server is away"))
		assert.False(t, w.isReady())
		w.source.configs.path = path
		w.run()
		assert.True(t, w.isReady())
		w.inForce("from-file", OriginFile, 0)
	})
}

func TestSourceForgetsTheRememberedConfigIfThereIsNone(t *testing.T) {
	path := onDisk(t, disk("gone", 1, 1))
	inWorld(t, nil, func(w *world) {
		w.source.configs.path = path
		w.run()
		w.inForce("", OriginNone, 0)
	})
}

func TestSourceLeavesOutADamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	inWorld(t, nil, func(w *world) {
		w.source.configs.path = path
		w.run()
		assert.Contains(t, w.logged()[0], "warning: cannot use the PacemakerConfigs on disk: ")
		w.inForce("", OriginNone, 0)
		_, err := keeper(path).load()
		require.NoError(t, err, "the file is replaced")
	})
}

// The last good version outlives the daemon while the API server has only a bad one.
func TestSourceRecallsTheLastGoodVersionOfABadObject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		uid    types.UID
		name   string
		origin Origin
		gen    int64
	}{
		"the same object":          {"uid-of-a", "a", OriginAPI, 3},
		"another of the same name": {"another", "", OriginNone, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := onDisk(t, disk("a", 3, 5))
			inWorld(t, nil, func(w *world) {
				bad := testObject("a", 4, 0, nil)
				bad.SetUID(c.uid)
				w.put(bad)
				w.source.configs.path = path
				w.run()
				w.inForce(c.name, c.origin, c.gen)
			})
		})
	}
}

// The API server may not serve PacemakerConfigs, or not to this daemon. This is an answer: no limit applies, and no
// pod waits for a change of it.
func TestSourceIsReadyIfTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	what := v1alpha1.Resource.GroupResource()
	for name, c := range map[string]struct {
		err  error
		told bool
	}{
		// The API server's answer for a resource that it does not have.
		"no CRD":   {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", what, "", "404 page not found", 0, true), true},
		"no right": {apierrors.NewForbidden(what, "", errors.New("RBAC")), true},
		"away":     {errors.New("connection refused"), false},
		"starting": {apierrors.NewServiceUnavailable("starting"), false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				relent := w.refuse(c.err)
				w.run()
				assert.False(t, w.isReady(), "it may have just started")
				assert.Equal(t, "PacemakerConfigs", w.source.Faults()[0].What)
				w.hour()
				assert.Equal(t, c.told, w.isReady())
				w.inForce("", OriginNone, 0)
				said := "warning: the API server does not serve PacemakerConfigs to this daemon: no limit is in force until it does"
				if c.told {
					assert.Contains(t, w.logged(), said)
				} else {
					assert.NotContains(t, w.logged(), said)
				}
				relent()
				w.put(testObject("a", 1, 2, nil))
				w.hour()
				w.inForce("a", OriginAPI, 1)
				assert.Equal(t, []*informer.Fault{nil, nil, nil}, w.source.Faults())
			})
		})
	}
}

func TestSourceSaysOnceThatItCannotKeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	inWorld(t, nil, func(w *world) {
		w.source.configs.path = filepath.Join(path, "config.json")
		w.logged()
		w.run()
		w.put(testObject("a", 1, 2, nil))
		w.delete("a")
		n := 0
		for _, line := range w.logged() {
			if strings.HasPrefix(line, "warning: the PacemakerConfigs cannot be kept on disk") {
				n++
			}
		}
		assert.Equal(t, 1, n)
	})
}

// A daemon that may read the configs but not its Node does not know its labels. It says so, and uses what it can.
func TestSourceWithoutTheRightToReadItsNode(t *testing.T) {
	t.Parallel()
	path := onDisk(t, disk("kept", 3, 5))
	for name, c := range map[string]struct {
		path, inForce string
		origin        Origin
		gen           int64
	}{
		"nothing on disk":  {filepath.Join(t.TempDir(), "config.json"), "any", OriginAPI, 1},
		"a config on disk": {path, "kept", OriginDisk, 3},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				var refused atomic.Bool
				refused.Store(true)
				w.nodes.PrependReactor("list", "nodes", func(a clienttest.Action) (bool, runtime.Object, error) {
					return refused.Load(), nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("RBAC"))
				})
				w.source.configs.path = c.path
				w.put(testObject("any", 1, 2, nil))
				big := testObject("big", 1, 7, map[string]any{"size": "big"})
				require.NoError(t, unstructured.SetNestedField(big.Object, int64(9), "spec", "priority"))
				w.put(big)
				w.run()
				w.hour()
				assert.True(t, w.isReady())
				w.inForce(c.inForce, c.origin, c.gen)
				logged := w.logged()
				assert.Equal(t, "this node", w.source.Faults()[2].What)
				assert.Contains(t, logged, "warning: the API server does not let this daemon read the labels of node node-1: until it does, what is on disk stays in force; "+
					"if nothing is, only what has no nodeSelector can be")
				assert.NotContains(t, strings.Join(logged, "\n"), "does not serve PacemakerConfigs")
				before, _ := os.ReadFile(c.path)
				assert.NotContains(t, string(before), `"any"`, "the next daemon must not take that for what selects the node")
				refused.Store(false)
				w.hour()
				w.inForce("big", OriginAPI, 1)
			})
		})
	}
}

func TestASourceIsReadyBeforeItsObjectsAreOnDisk(t *testing.T) {
	t.Parallel()
	f := keeper(filepath.Join(t.TempDir(), "config.json"))
	f.put = func([]*v1alpha1.PacemakerConfig, Origin) { assert.False(t, closed(f.ready), "nothing is in force yet") }
	f.node.listed.Store(true)
	writes := 0
	f.Write = func(string, []byte) error {
		writes++
		assert.True(t, closed(f.ready))
		return nil
	}
	f.decide()
	assert.Equal(t, 1, writes)
}
