//go:build e2e

package apiserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
)

// resources are those of the kinds in the files.
var resources = map[string]schema.GroupVersionResource{
	"PacemakerConfig": {Group: "pod-pacemaker.io", Version: "v1alpha1", Resource: "pacemakerconfigs"},
	"StartPolicy":     {Group: "pod-pacemaker.io", Version: "v1alpha1", Resource: "startpolicies"},
}

// The API server, by the shipped CRD, accepts and refuses the same configurations
// and policies as `pod-pacemaker check`, and names the same field. That check does is
// what the unit tests of crd and crd/startpolicy say, with the same files.
func TestAPIServerAndCheckAgree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		folder string
		valid  bool
	}{
		{"valid", true},
		{"invalid", false},
		{"startpolicy/valid", true},
		{"startpolicy/invalid", false},
		{"startpolicy/unusable", true}, // whether groupBy is a JSONPath, no rule can say
	} {
		files, err := filepath.Glob(chart.Repository("crd", "testdata", c.folder, "*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, files, c.folder)
		for _, file := range files {
			t.Run(c.folder+"/"+filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				err := tryToCreate(t, file)
				if c.valid {
					assert.NoError(t, err)
					return
				}
				require.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v", err)
				assert.Contains(t, err.Error(), faultOf(t, file))
			})
		}
	}
}

// tryToCreate asks the API server to create the object in a file, strictly and as a
// dry run.
func tryToCreate(t *testing.T, file string) error {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.UnmarshalStrict(data, &object.Object))
	resource, ok := resources[object.GetKind()]
	require.True(t, ok, "kind %q", object.GetKind())
	_, err = api.Resource(resource).Create(t.Context(), object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// faultOf is the field that a bad configuration has to be refused for: its first
// line, a comment.
func faultOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(data), "\n")
	field, ok := strings.CutPrefix(first, "# ")
	require.True(t, ok, "%s begins with the field in a comment", file)
	return field
}
