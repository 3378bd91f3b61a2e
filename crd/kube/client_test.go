package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
			_, err := api.Pods("").Each(ctx, metav1.ListOptions{Limit: 1}, nil)
			return err
		},
		"GET /api/v1/nodes/a": func() error { _, err := api.Nodes().Get(ctx, "a", metav1.GetOptions{}); return err },
		"GET /api/v1/namespaces?limit=1": func() error {
			_, err := api.Namespaces().Each(ctx, metav1.ListOptions{Limit: 1}, nil)
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

// A list is read one object after the other: the first is passed on before the API server has sent the second.
func TestAListIsReadOneObjectAfterTheOther(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	for name, c := range map[string]struct {
		parts []string
		names []string
		fault bool
	}{
		"two":                       {[]string{`{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}},`, `{"metadata":{"name":"b"}}]}`}, []string{"a", "b"}, false},
		"none":                      {[]string{`{"items":null,"metadata":{"resourceVersion":"7"}}`}, nil, false},
		"cut off after an object":   {[]string{`{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}`}, []string{"a"}, true},
		"cut off after the objects": {[]string{`{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]`}, []string{"a"}, true},
		"no list":                   {[]string{`[]`}, nil, true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i, part := range c.parts {
				if i > 0 {
					_ = http.NewResponseController(w).Flush()
					<-first
				}
				_, _ = w.Write([]byte(part))
			}
		}))
		t.Cleanup(server.Close)
		api, err := New(&rest.Config{Host: server.URL})
		require.NoError(t, err)
		var names []string
		version, err := api.Pods("").Each(t.Context(), metav1.ListOptions{}, func(o runtime.Object) {
			pod, _ := o.(*corev1.Pod)
			if names = append(names, pod.Name); len(c.parts) > 1 && len(names) == 1 {
				close(first)
			}
		})
		assert.Equal(t, c.names, names, name)
		if assert.Equal(t, c.fault, err != nil, name); !c.fault {
			assert.Equal(t, "7", version, name)
		}
	}
}
