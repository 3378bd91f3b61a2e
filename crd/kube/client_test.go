package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Each kind is read at the path at which the API server serves it.
func TestEachKindHasItsPath(t *testing.T) {
	t.Parallel()
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.String()
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	api, err := New(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	ctx := t.Context()

	for want, request := range map[string]func() error{
		"GET /api/v1/pods?limit=1": func() error {
			_, err := api.Pods("").List(ctx, metav1.ListOptions{Limit: 1})
			return err
		},
		"GET /api/v1/nodes/a": func() error { _, err := api.Nodes().Get(ctx, "a", metav1.GetOptions{}); return err },
		"GET /api/v1/namespaces?limit=1": func() error {
			_, err := api.Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
			return err
		},
		"PATCH /api/v1/namespaces/n/events/a": func() error {
			_, err := api.Events("n").Patch(ctx, "a", "", nil, metav1.PatchOptions{})
			return err
		},
		"GET /apis/apps/v1/namespaces/n/daemonsets/a": func() error {
			_, err := api.DaemonSets("n").Get(ctx, "a", metav1.GetOptions{})
			return err
		},
		"DELETE /apis/coordination.k8s.io/v1/namespaces/n/leases/a": func() error {
			return api.Leases("n").Delete(ctx, "a", metav1.DeleteOptions{})
		},
	} {
		require.Error(t, request())
		assert.Equal(t, want, asked)
	}
}
