package base

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const deploy = "../../deploy"

// render builds base as `kubectl apply -k` does, under an overlay with the given lines. It decodes the result into
// its API types. A field that they do not know fails the test. CRDs are left out: package crd tests them.
func render(t *testing.T, overlay string) []runtime.Object {
	t.Helper()
	return renderOn(t, "../base", overlay)
}

// renderOn is render with another folder in place of ../base.
func renderOn(t *testing.T, under, overlay string) []runtime.Object {
	t.Helper()
	files := filesys.MakeFsInMemory()
	for _, dir := range []string{"base", "crds", "overlays/kubelet-config"} {
		names, err := filepath.Glob(filepath.Join(deploy, dir, "*.yaml"))
		require.NoError(t, err)
		for _, name := range names {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, files.WriteFile("/deploy/"+dir+"/"+filepath.Base(name), data))
		}
	}
	require.NoError(t, files.WriteFile("/deploy/overlay/kustomization.yaml", []byte("resources: ["+under+"]\n"+overlay)))

	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/deploy/overlay")
	require.NoError(t, err)
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for _, resource := range resources.Resources() {
		if resource.GetKind() == "CustomResourceDefinition" {
			continue
		}
		data, err := resource.AsYAML()
		require.NoError(t, err)
		object, _, err := decoder.Decode(data, nil, nil)
		require.NoError(t, err, "%s", data)
		objects = append(objects, object)
	}
	return objects
}

// only returns the one object of type T.
func only[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	found := every[T](objects)
	require.Len(t, found, 1)
	return found[0]
}

// every returns the objects of type T.
func every[T runtime.Object](objects []runtime.Object) []T {
	var found []T
	for _, object := range objects {
		if one, ok := object.(T); ok {
			found = append(found, one)
		}
	}
	return found
}

func TestBaseHoldsTheseObjectsAndNoOthers(t *testing.T) {
	t.Parallel()
	var got []string
	for _, object := range render(t, "") {
		accessor, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		require.NoError(t, err)
		var header struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		data, err := yaml.Marshal(accessor)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(data, &header))
		got = append(got, header.Kind+" "+filepath.Join(header.Metadata.Namespace, header.Metadata.Name))
	}
	require.ElementsMatch(t, []string{
		"Namespace pod-pacemaker",
		"ResourceQuota pod-pacemaker/pod-pacemaker-critical-pods",
		"ServiceAccount pod-pacemaker/pod-pacemaker",
		"ClusterRole pod-pacemaker-pods",
		"ClusterRole pod-pacemaker-configs",
		"ClusterRole pod-pacemaker-events",
		"ClusterRole pod-pacemaker-report",
		"ClusterRole pod-pacemaker-summary",
		"ClusterRoleBinding pod-pacemaker-pods",
		"ClusterRoleBinding pod-pacemaker-configs",
		"ClusterRoleBinding pod-pacemaker-events",
		"ClusterRoleBinding pod-pacemaker-report",
		"ClusterRoleBinding pod-pacemaker-summary",
		"Role pod-pacemaker/pod-pacemaker-turns",
		"RoleBinding pod-pacemaker/pod-pacemaker-turns",
		"Role pod-pacemaker/pod-pacemaker-uninstall",
		"RoleBinding pod-pacemaker/pod-pacemaker-uninstall",
		"ValidatingAdmissionPolicy pod-pacemaker-own-node", "ValidatingAdmissionPolicyBinding pod-pacemaker-own-node",
		"ValidatingAdmissionPolicy pod-pacemaker-own-slots", "ValidatingAdmissionPolicyBinding pod-pacemaker-own-slots",
		"ValidatingAdmissionPolicy pod-pacemaker-own-events", "ValidatingAdmissionPolicyBinding pod-pacemaker-own-events",
		"DaemonSet pod-pacemaker/pod-pacemaker",
	}, got)
}
