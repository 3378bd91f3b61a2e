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

// resources maps the kinds in the files to their resources.
var resources = map[string]schema.GroupVersionResource{
	"PacemakerConfig": {Group: "pod-pacemaker.io", Version: "v1alpha1", Resource: "pacemakerconfigs"},
	"StartPolicy":     {Group: "pod-pacemaker.io", Version: "v1alpha1", Resource: "startpolicies"},
}

// dotted writes requests[cpu] as requests.cpu: the API server names an entry of a mapping in the first
// way if a rule refuses it, and in the second way if a pattern does.
var dotted = strings.NewReplacer("[", ".", "]", "")

// With the shipped CRDs, the API server accepts and refuses the same configurations and policies as
// `pod-pacemaker check`, and names the same field. The unit tests of crd and crd/startpolicy check
// the other side with the same files.
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
				assert.Contains(t, dotted.Replace(err.Error()), dotted.Replace(faultOf(t, file)))
			})
		}
	}
}

// tryToCreate asks the API server to create the object in a file, as a strict dry run.
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

// faultOf returns the field that a bad configuration must be refused for, from the comment in its
// first line.
func faultOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(data), "\n")
	field, ok := strings.CutPrefix(first, "# ")
	require.True(t, ok, "%s must begin with the field in a comment", file)
	return field
}
