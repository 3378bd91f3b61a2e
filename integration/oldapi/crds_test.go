package oldapi

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

// What the API server does with a CRD that is created: decode it strictly, set defaults, validate it.
func TestTheOldestAPIServerAcceptsTheCRDs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../deploy/crds/*_*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, file)), &crd), file)
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&crd)
		var internal apiextensions.CustomResourceDefinition
		require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &internal, nil), file)
		internal.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
		for _, fault := range validation.ValidateCustomResourceDefinition(t.Context(), &internal) {
			t.Errorf("%s: %v", filepath.Base(file), fault)
		}
	}
}

// Without this, a tool could raise the library with all others, and the test above would say nothing.
func TestTheLibraryIsOfTheOldestVersion(t *testing.T) {
	t.Parallel()
	oldest := regexp.MustCompile(`(?m)^kubeVersion: ">=1\.(\d+\.\d+)-0"$`).FindStringSubmatch(read(t, "../../deploy/chart/pod-pacemaker/Chart.yaml"))
	require.Len(t, oldest, 2)
	assert.Contains(t, read(t, "go.mod"), "k8s.io/apiextensions-apiserver v0."+oldest[1]+"\n")
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}
