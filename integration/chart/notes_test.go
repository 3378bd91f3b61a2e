package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// cluster has the PacemakerConfigs that the notes look up.
type cluster []runtime.Object

// GetClientFor is of [engine.ClientProvider].
func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	configs := schema.FromAPIVersionAndKind(apiVersion, kind).GroupVersion().WithResource(strings.ToLower(kind) + "s")
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{configs: kind + "List"}, c...)
	return client.Resource(configs), false, nil
}

// notesIn returns the notes of a release in a cluster with these configs.
func notesIn(t *testing.T, values string, configs ...string) string {
	t.Helper()
	var in cluster
	for _, config := range configs {
		object := vals(t, config)
		object["apiVersion"], object["kind"] = "pod-pacemaker.io/v1alpha1", "PacemakerConfig"
		in = append(in, &unstructured.Unstructured{Object: object})
	}
	c, err := load()
	require.NoError(t, err)
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(capabilities.APIVersions, "pod-pacemaker.io/v1alpha1/PacemakerConfig")
	all, err := util.ToRenderValues(c, vals(t, values), common.ReleaseOptions{Name: "pod-pacemaker", Namespace: "pacing"}, capabilities)
	require.NoError(t, err)
	rendered, err := engine.RenderWithClientProvider(c, all, in)
	require.NoError(t, err)
	return rendered[c.Name()+"/templates/"+notes]
}

// The notes show the configs that the daemons of this release follow, and how to switch off each.
func TestNotesSwitchOffEachConfigOfTheInstance(t *testing.T) {
	t.Parallel()
	configs := []string{
		"{metadata: {name: big-nodes}, spec: {nodeSelector: {node-size: big}}}",
		"{metadata: {name: of-another}, spec: {instance: second}}",
		"{metadata: {name: small-nodes}, spec: {mode: Shadow}}",
		"{metadata: {name: without-spec}}",
	}
	off := func(name string) string {
		return "\n  kubectl patch pacemakerconfig " + name + ` --type merge -p '{"spec":{"mode":"Disabled"}}'` + "\n"
	}
	for values, has := range map[string][]string{
		"{}": {"big-nodes", "small-nodes", "without-spec"}, "{instance: second}": {"of-another"}, "{instance: third}": nil,
		"instance:": {"big-nodes", "small-nodes", "without-spec"}, // null
	} {
		have := notesIn(t, values, configs...)
		for _, name := range []string{"big-nodes", "of-another", "small-nodes", "without-spec"} {
			if slices.Contains(has, name) {
				require.Contains(t, have, off(name), values)
				require.Contains(t, have, "\n  PacemakerConfig "+name+": ", values)
			} else {
				require.NotContains(t, have, name, values)
			}
		}
		require.Equal(t, len(has) == 0, strings.Contains(have, "no PacemakerConfig, so no pod waits"), values)
		require.Equal(t, len(has) == 0, strings.Contains(have, off("every-node")), "the config that the notes tell to create")
		require.Contains(t, have, "once they are updateStrategy.rollingUpdate.maxUnavailable (10%).\n", values)
		require.Contains(t, have, "\n  kubectl apply -f deploy/samples/all-off.yaml\n", values)
		require.NotContains(t, have, "\n\n\n", values)
	}
}
