package crd

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/rules"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

const nodeName = "node-1"

// world is a Source with fake API clients, in a synctest bubble: time stands still until every goroutine waits.
type world struct {
	t       *testing.T
	configs *dynamicfake.FakeDynamicClient
	nodes   *kubefake.Clientset
	source  *Source
	log     *logtest.Hook
	told    []Effective
	panics  []string
	onNode  func(*corev1.Node)
}

// inWorld runs test against a Source that is not yet running.
func inWorld(t *testing.T, fallback *v1alpha1.PacemakerConfig, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, onNode: func(*corev1.Node) {}}
		w.configs = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{
				v1alpha1.Resource: v1alpha1.Kind + "List", v1alpha1.PolicyResource: v1alpha1.PolicyKind + "List",
			})
		w.nodes = kubefake.NewClientset(node(map[string]string{"size": "big"}))
		log, hook := logtest.NewNullLogger()
		log.SetLevel(logrus.InfoLevel) // client-go's own debug messages do not count
		w.log = hook
		w.source = NewSource(SourceOptions{
			Configs: w.configs, Nodes: kubetest.Of(w.nodes), NodeName: nodeName, Fallback: fallback, Log: log,
			OnChange: func(e Effective) {
				assert.False(w.t, len(w.told) == 0 && w.isReady(), "it is ready before a config is in force")
				w.told = append(w.told, e)
			},
			OnPolicies: func([]*v1alpha1.StartPolicy) {}, OnNode: func(n *corev1.Node) { w.onNode(n) },
			Write: writeFile,
			OnPanic: func(part string, fault any, fields logrus.Fields) {
				w.panics = append(w.panics, fmt.Sprint(part, ": ", fault, " ", fields))
			},
		})
		test(w)
	})
}

// run starts the Source, ends it after the test, and waits until it is idle.
func (w *world) run() {
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { w.source.Begin(); w.source.Run(ctx); done <- nil }()
	w.t.Cleanup(func() {
		stop()
		assert.NoError(w.t, <-done)
	})
	synctest.Wait()
}

func node(labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: labels}}
}

// hour lets an hour pass.
func (w *world) hour() {
	time.Sleep(time.Hour)
	synctest.Wait()
}

// testObject is a version of a PacemakerConfig whose maxConcurrent.value is value.
func testObject(name string, generation, value int64, selector map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name, "uid": "uid-of-" + name, "generation": generation},
		"spec": map[string]any{
			"nodeSelector":   selector,
			"throttleConfig": map[string]any{"maxConcurrent": map[string]any{"value": value}},
		},
	}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	return u
}

// put creates or updates an object of either kind.
func (w *world) put(u *unstructured.Unstructured) {
	w.t.Helper()
	api := w.configs.Resource(map[string]schema.GroupVersionResource{v1alpha1.Kind: v1alpha1.Resource, v1alpha1.PolicyKind: v1alpha1.PolicyResource}[u.GetKind()])
	_, err := api.Create(w.t.Context(), u, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = api.Update(w.t.Context(), u, metav1.UpdateOptions{})
	}
	require.NoError(w.t, err)
	synctest.Wait()
}

func (w *world) delete(name string) {
	require.NoError(w.t, w.configs.Resource(v1alpha1.Resource).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
	synctest.Wait()
}

// relabel updates the Node object.
func (w *world) relabel(labels map[string]string) {
	_, err := w.nodes.CoreV1().Nodes().Update(w.t.Context(), node(labels), metav1.UpdateOptions{})
	require.NoError(w.t, err)
	synctest.Wait()
}

// inForce asserts what is in force, and that it was reported last.
func (w *world) inForce(name string, origin Origin, generation int64) {
	w.t.Helper()
	current := *w.source.current.Load()
	assert.Equal(w.t, []any{name, origin, generation}, []any{current.Name, current.Origin, current.Generation})
	require.NotEmpty(w.t, w.told)
	assert.Equal(w.t, current, w.told[len(w.told)-1])
}

// logged returns the messages since the last call, with their errors.
func (w *world) logged() (lines []string) {
	for _, entry := range w.log.AllEntries() {
		line := entry.Level.String() + ": " + entry.Message
		if err := entry.Data[logrus.ErrorKey]; err != nil {
			line += fmt.Sprintf(": %v", err)
		}
		lines = append(lines, line)
	}
	w.log.Reset()
	return lines
}

func TestSourceFollowsConfigsAndLabels(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		none := []string{"warning: no PacemakerConfig selects this node, so no pod is held: compare its labels with the nodeSelectors in 'kubectl get pacemakerconfigs -o yaml'"}
		w.run()
		w.inForce("", OriginNone, 0)
		assert.Equal(t, none, w.logged())

		w.put(testObject("everywhere", 1, 4, nil))
		w.inForce("everywhere", OriginAPI, 1)
		assert.EqualValues(t, 4, *w.source.current.Load().Spec.ThrottleConfig.MaxConcurrent.Value)

		small := testObject("small", 1, 1, map[string]any{"size": "small"})
		require.NoError(t, unstructured.SetNestedField(small.Object, int64(5), "spec", "priority"))
		w.put(small)
		w.inForce("everywhere", OriginAPI, 1)

		w.relabel(map[string]string{"size": "small"})
		w.inForce("small", OriginAPI, 1)

		w.put(testObject("small", 2, 2, map[string]any{"size": "tiny"}))
		w.inForce("everywhere", OriginAPI, 1)

		w.delete("everywhere")
		w.inForce("", OriginNone, 0)
		w.relabel(map[string]string{"size": "smaller"})
		w.hour()
		assert.Equal(t, none, w.logged(), "once")
		assert.Len(t, w.told, 5, "each change is reported once")
	})
}

// Every daemon of a node follows only the configs that name it.
func TestSourceFollowsItsInstance(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.source.configs.Instance = "canary"
		w.put(testObject("for-all-others", 1, 4, nil))
		w.run()
		w.inForce("", OriginNone, 0)

		canary := testObject("for-canary", 1, 1, nil)
		require.NoError(t, unstructured.SetNestedField(canary.Object, "canary", "spec", "instance"))
		w.put(canary)
		w.inForce("for-canary", OriginAPI, 1)

		away := testObject("for-canary", 2, 1, nil)
		w.put(away)
		w.inForce("", OriginNone, 0)
	})
}

func TestSourceFallsBackToTheFile(t *testing.T) {
	fallback := config("from-file", 0, map[string]v1alpha1.LabelValue{"not": "this-node"})
	inWorld(t, fallback, func(w *world) {
		w.run()
		w.inForce("from-file", OriginFile, 0)
		w.put(testObject("a", 3, 1, nil))
		w.inForce("a", OriginAPI, 3)
		w.delete("a")
		w.inForce("from-file", OriginFile, 0)
	})
}

func TestSourceKeepsTheLastGoodVersion(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run()
		w.put(testObject("a", 1, 2, nil))
		w.logged()

		bad := testObject("a", 2, 0, nil)
		w.put(bad)
		w.inForce("a", OriginAPI, 1)
		assert.Equal(t, []string{
			"error: PacemakerConfig a is invalid: its generation 1 stays in force: " +
				"spec.throttleConfig.maxConcurrent.value: Invalid value: 0: must be a whole number from 1 to 1000",
		}, w.logged())

		bad.SetLabels(map[string]string{"touched": ""})
		w.put(bad)
		assert.Empty(t, w.logged(), "the same fault is logged once")

		w.put(testObject("a", 3, 3, nil))
		w.inForce("a", OriginAPI, 3)
		assert.Equal(t, []string{"info: PacemakerConfig a is valid again"}, w.logged())
		assert.Len(t, w.told, 3)
	})
}

func TestSourceTreatsAVersionThatItFailsToReadAsInvalid(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.source.configs.check = func(object map[string]any) (unknown, faults field.ErrorList) {
			if generation, _, _ := unstructured.NestedInt64(object, "metadata", "generation"); generation == 2 {
				panic("unforeseen")
			}
			return rules.Config(object)
		}
		w.run()
		w.put(testObject("a", 1, 2, nil))
		w.logged()
		w.put(testObject("a", 2, 3, nil))
		w.inForce("a", OriginAPI, 1)
		assert.Equal(t, []string{"crd decode: unforeseen map[config:a]"}, w.panics)
		assert.Equal(t, []string{
			"error: PacemakerConfig a is invalid: its generation 1 stays in force: this version of pod-pacemaker fails to read it: unforeseen",
		}, w.logged())
		w.put(testObject("a", 3, 4, nil))
		w.inForce("a", OriginAPI, 3)
	})
}

// The handler of a new config panics. The next config is put in force all the same.
func TestSourceContinuesAfterAPanic(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		told := w.source.options.OnChange
		w.source.options.OnChange = func(e Effective) {
			if e.Generation == 1 {
				panic("unforeseen")
			}
			told(e)
		}
		w.run()
		w.put(testObject("a", 1, 2, nil))
		synctest.Wait()
		assert.Equal(t, []string{"crd decide: unforeseen map[]"}, w.panics)
		w.put(testObject("a", 2, 3, nil))
		w.inForce("a", OriginAPI, 2)
	})
}

func TestSourceLeavesOutConfigsThatWereNeverValid(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.put(testObject("bad", 1, -1, nil))
		w.run()
		w.inForce("", OriginNone, 0)
		assert.Contains(t, w.logged()[0], "error: PacemakerConfig bad is invalid and ignored: no earlier version was valid: spec.throttleConfig.maxConcurrent.value: ")

		w.put(testObject("good", 1, 1, nil))
		w.inForce("good", OriginAPI, 1)
	})
}

func TestSourceInheritsNothingFromADeletedObject(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run()
		w.put(testObject("a", 1, 2, nil))
		w.inForce("a", OriginAPI, 1)

		// A watch that was interrupted sees one update instead of deletion and creation.
		anew := testObject("a", 1, 0, nil)
		anew.SetUID(types.UID("another"))
		w.put(anew)
		w.inForce("", OriginNone, 0)
	})
}

func TestSourceLeavesOutAFieldThatItDoesNotKnow(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		u := testObject("newer", 1, 2, nil)
		require.NoError(t, unstructured.SetNestedField(u.Object, "80", "spec", "throttleConfig", "gpu", "maxLoad"))
		w.put(u)
		w.run()
		w.inForce("newer", OriginAPI, 1)
		assert.Equal(t, []string{
			"warning: PacemakerConfig newer has fields that this version does not know; they are ignored: " +
				"spec.throttleConfig.gpu: Forbidden: unknown field, must be one of: adaptive, cpu, io, loadAvg, " +
				"maxConcurrent, maxPulling, noProgressAfter, pressure, rateLimit",
		}, w.logged())
	})
}

func TestSourceNamesTies(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.put(testObject("b", 1, 2, nil))
		w.put(testObject("a", 1, 1, nil))
		w.run()
		w.inForce("a", OriginAPI, 1)
		const tie = "warning: PacemakerConfigs of the same priority also select this node: b; a, the first by name, is in force"
		assert.Equal(t, []string{tie}, w.logged())
		w.relabel(map[string]string{"other": ""})
		assert.Empty(t, w.logged(), "a tie is logged once")
	})
}

func TestSourceWorksWithoutANodeObject(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		require.NoError(t, w.nodes.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", nodeName))
		w.put(testObject("big", 1, 1, map[string]any{"size": "big"}))
		w.run()
		w.inForce("", OriginNone, 0)
		assert.Contains(t, w.logged()[0], "warning: the API server has no node node-1")

		require.NoError(t, w.nodes.Tracker().Add(node(map[string]string{"size": "big"})))
		synctest.Wait()
		w.inForce("big", OriginAPI, 1)

		// The node is gone from the API server, but this daemon still runs.
		require.NoError(t, w.nodes.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", nodeName))
		synctest.Wait()
		w.inForce("big", OriginAPI, 1)
	})
}

func TestSourceAsksForThisNodeOnly(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run()
		asked := 0
		for _, action := range w.nodes.Actions() {
			switch a := action.(type) {
			case clienttest.ListActionImpl:
				asked++
				assert.Equal(t, "metadata.name=node-1", a.GetListRestrictions().Fields.String())
			case clienttest.WatchActionImpl:
				asked++
				assert.Equal(t, "metadata.name=node-1", a.GetWatchRestrictions().Fields.String())
			}
		}
		assert.Equal(t, 2, asked, "one list, one watch")
	})
}

func TestTheCacheKeepsLittle(t *testing.T) {
	t.Parallel()
	u := testObject("a", 1, 1, nil)
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	u.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
	read := newFollower(configKind, SourceOptions{}, "", nil, nil).readVersion
	kept := read(u)
	assert.Equal(t, read(testObject("a", 1, 1, nil)), kept)
	assert.NotNil(t, kept.Valid)
	for _, meta := range []metav1.ObjectMeta{kept.ObjectMeta, kept.Valid.ObjectMeta} {
		assert.Empty(t, meta.ManagedFields)
		assert.Empty(t, meta.Annotations)
	}

	full := node(map[string]string{"size": "big"})
	full.Status.Images = []corev1.ContainerImage{{Names: []string{"large"}}}
	full.Annotations = map[string]string{"a": "b"}
	assert.Equal(t, node(map[string]string{"size": "big"}), trimNode(full))
}

func TestSourceReportsEveryVersionOfTheNode(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		says := func(message string) {
			t.Helper()
			n := node(nil)
			n.Spec.Taints = []corev1.Taint{{Key: message}}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: message}}
			_, err := w.nodes.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
			require.NoError(t, err)
			synctest.Wait()
		}
		var heard []string
		w.onNode = func(n *corev1.Node) {
			require.Len(t, n.Status.Conditions, 1)
			require.Len(t, n.Spec.Taints, 1)
			heard = append(heard, n.Status.Conditions[0].Message)
		}
		says("before")
		w.run()
		says("after")
		assert.Equal(t, []string{"before", "after"}, heard)
	})
}
