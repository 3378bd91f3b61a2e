package report

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// replaceStatus writes the status of an object if its fields, given as JSON pointers, have the values in where, and returns
// the object. Otherwise apierrors.IsInvalid reports true for the error.
func replaceStatus(ctx context.Context, api dynamic.ResourceInterface, name string, status any, where map[string]any) (*unstructured.Unstructured, error) {
	var operations []map[string]any
	for path, value := range where {
		operations = append(operations, map[string]any{"op": "test", "path": path, "value": value})
	}
	patch, err := json.Marshal(append(operations, map[string]any{"op": "add", "path": "/status", "value": status}))
	if err != nil {
		return nil, err
	}
	return api.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
}
