package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// testPolicy is a version of a StartPolicy that lets this many pods run.
func testPolicy(name string, generation, pods int64, selector map[string]any) *unstructured.Unstructured {
	spec := map[string]any{
		"selector": map[string]any{"terms": []any{map[string]any{"podSelector": map[string]any{}}}},
		"limits":   map[string]any{"running": map[string]any{"pods": pods}},
	}
	if selector != nil {
		spec["nodeSelector"] = selector
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.PolicyKind,
		"metadata": map[string]any{"name": name, "uid": "uid-of-" + name, "generation": generation}, "spec": spec,
	}}
}

// policing is a world that follows policies, too.
type policing struct {
	*world
	inForce [][]string
}

func inPolicedWorld(t *testing.T, fallback []*v1alpha1.StartPolicy, test func(w *policing)) {
	inWorld(t, nil, func(w *world) {
		p := &policing{world: w}
		w.source.options.FilePolicies = fallback
		w.source.options.OnPolicies = func(all []*v1alpha1.StartPolicy) {
			names := []string{}
			for _, one := range all {
				names = append(names, one.Name)
			}
			p.inForce = append(p.inForce, names)
		}
		test(p)
	})
}

// now returns the policies that were reported last.
func (w *policing) now() []string { return w.inForce[len(w.inForce)-1] }

func TestPoliciesThatSelectTheNodeAreInForce(t *testing.T) {
	inPolicedWorld(t, nil, func(w *policing) {
		w.put(testPolicy("b", 1, 1, map[string]any{"size": "big"}))
		w.put(testPolicy("a", 1, 1, nil))
		w.put(testPolicy("small", 1, 1, map[string]any{"size": "small"}))
		other := testPolicy("other", 1, 1, nil)
		require.NoError(t, unstructured.SetNestedField(other.Object, "blue", "spec", "instance"))
		w.put(other)
		w.run()
		assert.Equal(t, []string{"a", "b"}, w.now())
		<-w.source.PoliciesReady()

		w.relabel(map[string]string{"size": "small"})
		assert.Equal(t, []string{"a", "small"}, w.now(), "a change of the node's labels counts")

		require.NoError(t, w.configs.Resource(v1alpha1.PolicyResource).Delete(t.Context(), "a", metav1.DeleteOptions{}))
		synctest.Wait()
		assert.Equal(t, []string{"small"}, w.now())
		var known []string
		for _, k := range w.source.KnownPolicies() {
			known = append(known, k.Name)
		}
		assert.Equal(t, []string{"b", "small"}, known)
	})
}

func TestTheLastGoodVersionOfAnInvalidPolicyStaysInForce(t *testing.T) {
	inPolicedWorld(t, nil, func(w *policing) {
		w.put(testPolicy("a", 1, 1, nil))
		w.run()
		bad := func(name string) *unstructured.Unstructured {
			u := testPolicy(name, 2, 1, nil)
			require.NoError(t, unstructured.SetNestedField(u.Object, ".spec.containers[0", "spec", "groupBy"))
			return u
		}
		w.put(bad("a"))
		w.put(bad("b"))
		assert.Equal(t, []string{"a"}, w.now())
		known := w.source.KnownPolicies()
		require.Len(t, known, 2)
		for _, k := range known {
			assert.Contains(t, k.Fault, "spec.groupBy")
			assert.EqualValues(t, 2, k.Generation)
		}
		assert.EqualValues(t, 1, known[0].Valid.Generation)
		assert.Nil(t, known[1].Valid)
		assert.Equal(t, 1, w.count("StartPolicy a is invalid: its generation 1 stays in force"))
		assert.Equal(t, 1, w.count("StartPolicy b is invalid and ignored: no earlier version was valid"))
		w.put(testPolicy("b", 3, 1, nil))
		assert.Equal(t, []string{"a", "b"}, w.now())
	})
}

func TestPoliciesOfTheFileAreTheFallback(t *testing.T) {
	file, err := Parse([]byte(aPolicy))
	require.NoError(t, err)
	inPolicedWorld(t, file.Policies, func(w *policing) {
		w.run()
		assert.Equal(t, []string{"t1"}, w.now())
		w.put(testPolicy("a", 1, 1, nil))
		assert.Equal(t, []string{"a"}, w.now())
	})
}

// The objects of one kind stay in force though the other kind cannot be read. Each fault is logged for its own kind.
func TestPoliciesAndConfigsAreReadSeparately(t *testing.T) {
	refusing := func(resource string) (string, error) {
		return resource, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no role"))
	}
	absent := func(resource string) (string, error) {
		return resource, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "")
	}
	for name, c := range map[string]struct {
		answer func(string) (string, error)
		said   string
	}{
		"forbidden": {refusing, "not allowed to watch %s: give the daemon's user the roles in deploy/base/rbac.yaml; using the last known objects; trying again until it works"},
		"unknown":   {absent, "the API server does not know %s: install its CustomResourceDefinition (kubectl apply -k deploy/crds); trying again until it does"},
	} {
		for resource, kinds := range map[string][2]string{
			"pacemakerconfigs": {"PacemakerConfigs", "StartPolicies"}, "startpolicies": {"StartPolicies", "PacemakerConfigs"},
		} {
			t.Run(name+" "+resource, func(t *testing.T) {
				inPolicedWorld(t, nil, func(w *policing) {
					w.configs.PrependReactor("list", resource, func(clienttest.Action) (bool, runtime.Object, error) {
						_, err := c.answer(resource)
						return true, nil, err
					})
					w.put(testPolicy("a", 1, 1, map[string]any{"size": "big"}))
					w.put(testObject("big", 1, 1, map[string]any{"size": "big"}))
					w.run()
					w.hour()
					assert.Equal(t, 1, w.count(fmt.Sprintf(c.said, kinds[0])))
					assert.Zero(t, w.count(fmt.Sprintf(c.said, kinds[1])))
					assert.True(t, closed(w.source.PoliciesReady()))
					assert.True(t, closed(w.source.Ready()))
					if resource == "startpolicies" {
						assert.Empty(t, w.now())
						w.world.inForce("big", OriginAPI, 1)
						return
					}
					assert.Equal(t, []string{"a"}, w.now())
					assert.Equal(t, OriginNone, w.source.current.Load().Origin)
				})
			})
		}
	}
}

func TestPoliciesAreRememberedUntilTheAPIServerAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "policies.json")
	inPolicedWorld(t, nil, func(w *policing) {
		w.source.policies.path = path
		w.put(testPolicy("a", 7, 3, nil))
		w.run()

		next := func(path string) (s *Source) { // in the next process, before the API server answers
			o := w.source.options
			o.PoliciesPath = path
			o.OnPolicies = func([]*v1alpha1.StartPolicy) {
				assert.False(t, closed(s.PoliciesReady()), "nothing is in force yet")
			}
			s = NewSource(o)
			s.policies.begin()
			return s
		}
		again := next(path)
		assert.True(t, closed(again.PoliciesReady()))
		require.Len(t, again.inForce, 1)
		kept := again.inForce[0]
		assert.Equal(t, "a", kept.Name)
		assert.EqualValues(t, 7, kept.Generation)
		assert.EqualValues(t, "uid-of-a", kept.UID)
		assert.EqualValues(t, 3, *kept.Spec.Limits.Running.Pods)

		data, err := os.ReadFile(path)
		require.NoError(t, err)
		var file map[string]any
		require.NoError(t, json.Unmarshal(data, &file))
		listed, ok := file["objects"].([]any)
		require.True(t, ok)
		file["objects"] = append(listed, map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.PolicyKind, "metadata": map[string]any{"name": "b"}, "spec": map[string]any{},
		})
		data, err = json.Marshal(file)
		require.NoError(t, err)
		other := filepath.Join(t.TempDir(), "policies.json")
		require.NoError(t, os.WriteFile(other, data, 0o600))
		partly := next(other)
		require.Len(t, partly.inForce, 1, "an invalid one does not affect the others")
		assert.Equal(t, 1, w.count("StartPolicy b on disk is ignored until the API server answers"))

		require.NoError(t, w.configs.Resource(v1alpha1.PolicyResource).Delete(t.Context(), "a", metav1.DeleteOptions{}))
		synctest.Wait()
		none := next(path)
		<-none.PoliciesReady() // the absence of policies is known, too
		assert.Empty(t, none.inForce)

		require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
		damaged := next(path)
		assert.False(t, closed(damaged.PoliciesReady()))
		assert.Empty(t, damaged.inForce)
		assert.Equal(t, 1, w.count("cannot use the StartPolicies on disk: those of the configuration file, if any, are in force until the API server answers"))
	})
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// count returns how often this message was logged.
func (w *policing) count(message string) (n int) {
	for _, e := range w.log.AllEntries() {
		if e.Message == message {
			n++
		}
	}
	return n
}

// The handler of new policies panics. The next policies are put in force all the same.
func TestPoliciesContinueAfterAPanic(t *testing.T) {
	inPolicedWorld(t, nil, func(w *policing) {
		told := w.source.options.OnPolicies
		w.source.options.OnPolicies = func(all []*v1alpha1.StartPolicy) {
			if len(all) != 2 {
				panic("unforeseen")
			}
			told(all)
		}
		w.run()
		<-w.source.PoliciesReady()
		w.put(testPolicy("a", 1, 1, nil))
		assert.Equal(t, slices.Repeat([]string{"crd decide: unforeseen map[]"}, 2), w.panics)
		w.put(testPolicy("b", 1, 1, nil))
		assert.Equal(t, []string{"a", "b"}, w.now())
	})
}
